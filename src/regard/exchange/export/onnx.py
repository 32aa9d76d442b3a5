"""Export of a sequence-to-sequence model as two ONNX graphs: the encoder and one decoder step.

The graphs are written node by node. Tracing (torch.onnx) takes seconds per layer, unrolls plain
recurrent layers, and would tie the graphs to the fast paths of regard (`nn.fast`).

Shapes: B sentences, k beams per sentence, S source length, T tokens, V vocabulary.
"""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.core.errors import UserError, info, note
from regard.core.options import not_exported
from regard.data.tensors.padded import Padded, pad
from regard.data.tensors.special import BOS, EOS, SPECIALS
from regard.exchange.export.onnx_decoder import nodes_of
from regard.exchange.export.onnx_encoder import encode
from regard.exchange.export.onnx_graph import Graph
from regard.exchange.export.onnx_layers import embed, linear
from regard.inference.onnx_engine import OnnxEngine
from regard.inference.packages import import_package
from regard.inference.predictor import Predictor
from regard.models.encoder_decoder import EncoderDecoder
from regard.search.forced_decoding import Stepper

INT8_NOTE = "int8: activations are quantized per batch, predictions may depend on the batch size"
GRAPHS = ("encoder", "step")
QUANTIZED = ("MatMul", "Gemm", "LSTM", "Gather")  # operators whose weights are quantized
ROWS, LENGTH = 8, 12  # random sources, and tokens per output, to compare logits
MAX_LOGIT_DIFFERENCE = 1e-3  # without quantization; logits are about 1 to 20


def export(predictor: Predictor, folder: Path, quantize: str | None = None) -> dict[str, Any]:
    """Write the graphs of the model into the folder; return their metadata."""
    model: Any = predictor.module
    if not predictor.task.exportable:
        raise UserError(
            f"{predictor.folder}: {predictor.task.kind} models cannot be exported to ONNX, only "
            "sequence-to-sequence models (transduce)"
        )
    if quantize not in (None, "float32", "int8"):
        raise UserError(f"--quantize {quantize}: expected float32 or int8 for ONNX")
    if unknown := not_exported(predictor.config.model, "onnx", "model"):
        raise UserError(
            f"{predictor.folder}: cannot be exported to ONNX: {'; '.join(unknown)}; use engine "
            "torch"
        )
    for package in ("onnx", "onnxruntime"):
        import_package(package)
    quantized = quantize == "int8"
    folder.mkdir(parents=True, exist_ok=True)
    write_graphs(model, folder, shared=not quantized)
    if quantized:
        _quantize(folder)
    apart = max_logit_difference(model, OnnxEngine(folder))
    if not quantized and not apart < MAX_LOGIT_DIFFERENCE:
        raise UserError(
            f"the graphs differ from the model: logits differ by up to {apart:.2g}; please report "
            "this with config.yaml"
        )
    info(f"max logit difference {apart:.1g}")
    if quantized:
        note(INT8_NOTE)
    return {"quantize": quantize or "float32", "max_logit_difference": apart}


@torch.no_grad()
def write_graphs(model: EncoderDecoder, folder: Path, shared: bool = True) -> None:
    """Write encoder.onnx and step.onnx. shared: store tied weights only once."""
    nodes = nodes_of(model.decoder)
    encoder, step = (Graph(name, shared) for name in GRAPHS)
    nodes.memory(encode(encoder, model.frontend, model.encoder))
    tokens = step.input("tokens", np.int64, "kB", 1)
    h = nodes.step(step, embed(step, model.target, tokens))
    step.output("logits", linear(step, model.head, h), "kB", len(model.head.weight))
    for graph in (encoder, step):
        graph.save(folder / f"{graph.name}.onnx")


def _quantize(folder: Path) -> None:
    """Quantize the weights of both graphs to eight bits, with one scale per column.

    The quantized weights are unsigned. Processors without VNNI add pairs of products in 16 bits,
    which would overflow with signed weights.
    """
    quantization = import_package("onnxruntime.quantization")
    level = logging.root.level
    for name in GRAPHS:
        path = folder / f"{name}.onnx"
        full = path.rename(path.with_suffix(".full"))
        logging.root.setLevel(logging.ERROR)  # onnxruntime logs advice for other processors
        try:
            quantization.quantize_dynamic(
                full,
                path,
                op_types_to_quantize=list(QUANTIZED),
                per_channel=True,
                weight_type=quantization.QuantType.QUInt8,
            )
        finally:
            logging.root.setLevel(level)
        full.unlink()


@torch.inference_mode()
def max_logit_difference(model: EncoderDecoder, engine: OnnxEngine) -> float:
    """Return the largest difference between the logits of model and engine, on random data."""
    rng = torch.Generator().manual_seed(1)
    first = len(SPECIALS)

    def tokens(count: int, length: int) -> list[int]:
        least = min(first, count - 1)
        return torch.randint(least, count, (length,), generator=rng).tolist()

    assert model.frontend.table is not None
    sizes = len(model.frontend.table.weight), len(model.target.weight)
    source = pad([[*tokens(sizes[0], row), EOS] for row in range(ROWS)])
    target = torch.tensor([[BOS, *tokens(sizes[1], LENGTH)] for _ in range(2 * ROWS)])
    device = model.head.weight.device
    ours = _logits(model, Padded(source.data.to(device), source.mask.to(device)), target.to(device))
    theirs = _logits(engine, source, target)
    return float((ours.cpu() - theirs).abs().max())


def _logits(stepper: Stepper, source: Padded, target: torch.Tensor) -> torch.Tensor:
    """Return the logits (k*B, T, V), step by step, with two beams after the first step."""
    state = stepper.start(source)
    logits, state = stepper.step(target[::2, :1], state)
    rows = torch.arange(len(source.data), device=target.device).repeat_interleave(2)
    found, state = [logits[rows]], state.select(rows)
    for t in range(1, target.shape[1]):
        logits, state = stepper.step(target[:, t : t + 1], state)
        found.append(logits)
    return torch.cat(found, 1)
