"""A trained transducer as two ONNX graphs: one reads the source, one makes a step.

They are written node by node. To trace the model instead (torch.onnx) takes seconds a layer,
unrolls plain recurrent layers, and would tie the graphs to how torch is made fast.

B rows of memory, k beams a row, S source length, T tokens, V vocabulary.
"""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.core.errors import UserError, info
from regard.core.options import not_exported
from regard.data.tensors.padded import Padded, pad
from regard.data.tensors.special import BOS, EOS, SPECIALS
from regard.exchange.export.onnx_decoder import nodes_of
from regard.exchange.export.onnx_encoder import encode
from regard.exchange.export.onnx_graph import Graph
from regard.exchange.export.onnx_layers import embed, linear
from regard.inference.onnx_engine import OnnxEngine
from regard.inference.packages import need
from regard.inference.predictor import Predictor
from regard.models.encoder_decoder import EncoderDecoder
from regard.search.forced_decoding import Stepper

GRAPHS = ("encoder", "step")
QUANTIZED = ("MatMul", "Gemm", "LSTM", "Gather")  # operators whose weights are rounded
ROWS, LENGTH = 8, 12  # sources and tokens by chance, for the first look
FARTHEST = 1e-3  # of logits, where weights are not rounded; they are about 1 to 20


def export(predictor: Predictor, folder: Path, quantize: str | None = None) -> dict[str, Any]:
    """Writes the model's graphs into the folder; facts about them."""
    model: Any = predictor.module
    if not predictor.task.exportable:
        raise UserError(
            f"{predictor.folder}: a {predictor.task.kind} model cannot be exported to ONNX, only "
            "transducers (sequence to sequence) can"
        )
    if quantize not in (None, "float32", "int8"):
        raise UserError(f"--quantize: float32 or int8 expected for ONNX, {quantize!r} found")
    if unknown := not_exported(predictor.config.model, "onnx", "model"):
        raise UserError(
            f"{predictor.folder}: cannot be exported to ONNX: {'; '.join(unknown)}; predict with "
            "the model as it is"
        )
    for package in ("onnx", "onnxruntime"):
        need(package)
    rounded = quantize == "int8"
    folder.mkdir(parents=True, exist_ok=True)
    write_graphs(model, folder, shared=not rounded)
    if rounded:
        _round(folder)
    apart = logits_apart(model, OnnxEngine(folder))
    if not rounded and not apart < FARTHEST:
        raise UserError(
            f"the graphs differ from the model: logits are up to {apart:.2g} apart; please report "
            "this with config.yaml"
        )
    info(f"logits are at most {apart:.1g} apart from the model's")
    if rounded:
        info("int8: numbers are rounded together for a batch, so answers may change with its size")
    return {"quantize": quantize or "float32", "logits_apart": apart}


@torch.no_grad()
def write_graphs(model: EncoderDecoder, folder: Path, shared: bool = True) -> None:
    """Writes encoder.onnx and step.onnx. shared: a weight used twice is written once."""
    nodes = nodes_of(model.decoder)
    encoder, step = (Graph(name, shared) for name in GRAPHS)
    nodes.memory(encode(encoder, model.frontend, model.encoder))
    tokens = step.input("tokens", np.int64, "kB", 1)
    h = nodes.step(step, embed(step, model.target, tokens))
    step.output("logits", linear(step, model.head, h), "kB", len(model.head.weight))
    for graph in (encoder, step):
        graph.save(folder / f"{graph.name}.onnx")


def _round(folder: Path) -> None:
    """Rounds the weights of both graphs to eight bits, each column with a scale of its own.

    They are without a sign: where there is no VNNI, processors add products of pairs in sixteen
    bits, which overflow if one factor has a sign.
    """
    quantization = need("onnxruntime.quantization")
    loud = logging.root.level
    for name in GRAPHS:
        path = folder / f"{name}.onnx"
        whole = path.rename(path.with_suffix(".whole"))
        logging.root.setLevel(logging.ERROR)  # it advises on models for other processors
        try:
            quantization.quantize_dynamic(
                whole,
                path,
                op_types_to_quantize=list(QUANTIZED),
                per_channel=True,
                weight_type=quantization.QuantType.QUInt8,
            )
        finally:
            logging.root.setLevel(loud)
        whole.unlink()


@torch.inference_mode()
def logits_apart(model: EncoderDecoder, engine: OnnxEngine) -> float:
    """The largest difference of logits of the two, over sources and outputs by chance."""
    chance = torch.Generator().manual_seed(1)
    first = len(SPECIALS)

    def tokens(count: int, length: int) -> list[int]:
        least = min(first, count - 1)
        return torch.randint(least, count, (length,), generator=chance).tolist()

    assert model.frontend.table is not None
    sizes = len(model.frontend.table.weight), len(model.target.weight)
    source = pad([[*tokens(sizes[0], row), EOS] for row in range(ROWS)])
    target = torch.tensor([[BOS, *tokens(sizes[1], LENGTH)] for _ in range(2 * ROWS)])
    device = model.head.weight.device
    ours = _logits(model, Padded(source.data.to(device), source.mask.to(device)), target.to(device))
    theirs = _logits(engine, source, target)
    return float((ours.cpu() - theirs).abs().max())


def _logits(stepper: Stepper, source: Padded, target: torch.Tensor) -> torch.Tensor:
    """(k*B, T, V): token by token, and from the second on for two beams a source."""
    state = stepper.start(source)
    logits, state = stepper.step(target[::2, :1], state)
    rows = torch.arange(len(source.data), device=target.device).repeat_interleave(2)
    found, state = [logits[rows]], state.select(rows)
    for t in range(1, target.shape[1]):
        logits, state = stepper.step(target[:, t : t + 1], state)
        found.append(logits)
    return torch.cat(found, 1)
