"""Export of a trained Transformer to CTranslate2."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.core.options import not_exported
from regard.data.tensors.special import BOS, EOS, UNK
from regard.inference.packages import import_package
from regard.inference.predictor import Predictor
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.positions import Position

QUANTIZE = ("int8", "int16", "float16", "bfloat16", "float32")
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH", "swish": "SWISH"}
LENGTH = 2048  # positions to export if they are unlimited


def export(predictor: Predictor, folder: Path, quantize: str | None = None) -> dict[str, Any]:
    """Write the model into the folder; return its metadata. Raise UserError if unsupported."""
    if quantize is not None and quantize not in QUANTIZE:
        raise UserError(f"--quantize {quantize}: expected one of {', '.join(QUANTIZE)}")
    if reasons := obstacles(predictor):
        onnx = predictor.task.exportable and not not_exported(
            predictor.config.model, "onnx", "model"
        )
        other = "--to onnx, or engine torch" if onnx else "engine torch"
        raise UserError(
            f"{predictor.folder}: cannot be exported to CTranslate2: {'; '.join(reasons)}; "
            f"use {other}"
        )
    model = predictor.module
    assert isinstance(model, EncoderDecoder)
    spec = spec_of(predictor.config.model, model)
    sides = {"source_length": spec.encoder, "length": spec.decoder}
    facts = {name: len(side.position_encodings.encodings) for name, side in sides.items()}
    for name, value in facts.items():
        spec.config.add_attribute(name, value)  # for the engine
    spec.validate()
    spec.optimize(quantize)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))
    return {"quantize": quantize or "float32", **facts}


def obstacles(predictor: Predictor) -> list[str]:
    """Return the parts of this model that CTranslate2 does not support."""
    if not predictor.task.exportable:
        return [f"a {predictor.task.kind} model (only sequence-to-sequence models are supported)"]
    options = predictor.config.model
    found = not_exported(options, "ctranslate2", "model")
    sides = (options.encoder, options.decoder)
    if not found and sides[0].norm.kind != sides[1].norm.kind:
        one, other = (side.norm.kind for side in sides)
        found.append(f"{one} norm in the encoder and {other} norm in the decoder")
    return found


def spec_of(options: Any, model: EncoderDecoder, copy: bool = True) -> Any:
    """Return the model as a CTranslate2 spec.

    copy: whether to copy the weights, because CTranslate2 quantizes them in place.
    """
    transformer_spec = import_package("ctranslate2.specs.transformer_spec")
    into = Filler(copy)
    encoder = transformer_spec.TransformerEncoderSpec(
        options.encoder.layers, options.encoder.heads, **_kind(options.encoder)
    )
    decoder = transformer_spec.TransformerDecoderSpec(
        options.decoder.layers, options.decoder.heads, **_kind(options.decoder)
    )
    table = model.frontend.table
    assert table is not None
    into.side(encoder, encoder.embeddings[0], model.encoder, table)
    into.side(decoder, decoder.embeddings, model.decoder, model.target)
    into.weights(decoder.projection, model.head)
    spec = transformer_spec.TransformerSpec(encoder, decoder)
    spec.register_source_vocabulary(_names(len(table.weight)))
    spec.register_target_vocabulary(_names(len(model.target.weight)))
    config = spec.config
    config.unk_token, config.eos_token = str(UNK), str(EOS)
    config.bos_token = config.decoder_start_token = str(BOS)
    config.layer_norm_epsilon = _epsilon(model)
    return spec


def _kind(part: Any) -> dict[str, Any]:
    """Return the spec options of the encoder or the decoder."""
    common_spec = import_package("ctranslate2.specs.common_spec")
    return {
        "pre_norm": part.norm_position.kind == "pre",
        "rms_norm": part.norm.kind == "rms",
        "activation": common_spec.Activation[ACTIVATIONS[part.activation]],
    }


class Filler:
    """A writer of weights into a CTranslate2 spec. copy: whether to copy the weights."""

    def __init__(self, copy: bool) -> None:
        self.copy = copy

    def side(self, spec: Any, embeddings: Any, part: Any, tokens: Any) -> None:
        """Fill in the encoder or the decoder."""
        embeddings.weight = self.array(tokens.weight)
        spec.scale_embeddings = np.float32(tokens.scale)
        spec.position_encodings.encodings = table(part, tokens.weight.shape[1]).numpy()
        if hasattr(spec, "layer_norm"):
            self.norm(spec.layer_norm, part.norm)
        for into, layer in zip(spec.layer, part.layers, strict=True):
            self.norm(into.self_attention.layer_norm, layer.attend.norm)
            self.several(into.self_attention, layer.attention.project, layer.attention.join)
            if layer.cross is not None:
                cross = layer.cross
                self.norm(into.attention.layer_norm, layer.look.norm)
                self.several(into.attention, cross.query, cross.project, cross.join)
            self.norm(into.ffn.layer_norm, layer.feed.norm)
            self.weights(into.ffn.linear_0, layer.feedforward.widen)
            self.weights(into.ffn.linear_1, layer.feedforward.narrow)

    def several(self, spec: Any, *layers: Any) -> None:
        """Fill in several linear layers."""
        for into, layer in zip(spec.linear, layers, strict=True):
            self.weights(into, layer)

    def weights(self, spec: Any, layer: Any) -> None:
        """Fill in a linear layer."""
        spec.weight = self.array(layer.weight)
        if getattr(layer, "bias", None) is not None:
            spec.bias = self.array(layer.bias)

    def norm(self, spec: Any, norm: Any) -> None:
        """Fill in a layer norm or an RMS norm."""
        spec.gamma = self.array(norm.weight)
        if getattr(norm, "bias", None) is not None:
            spec.beta = self.array(norm.bias)

    def array(self, tensor: Tensor) -> np.ndarray:
        """Return a tensor as a float32 array, copied or with shared memory."""
        numbers: np.ndarray = tensor.detach().float().cpu().numpy()
        return numbers.copy() if self.copy else numbers


def positions_of(part: Any) -> Position:
    """Return the position module of the encoder or the decoder."""
    assert isinstance(part.positions, Position)
    return part.positions


@torch.no_grad()
def table(part: Any, width: int) -> Tensor:
    """Return the position vectors (N, D) of the encoder or the decoder."""
    positions = positions_of(part)
    learned = list(positions.parameters())
    rows = len(learned[0]) if learned else LENGTH
    device = learned[0].device if learned else None
    return positions.embed(torch.zeros(1, rows, width, device=device), 0)[0].float().cpu()


def _epsilon(model: EncoderDecoder) -> float:
    """Return the epsilon that all norms share."""
    kinds = (nn.LayerNorm, nn.RMSNorm)
    found = {norm.eps for norm in model.modules() if isinstance(norm, kinds)}
    assert len(found) == 1, found
    return float(found.pop() or 0.0)


def _names(count: int) -> list[str]:
    """Return the token ids as token names, so that any vocabulary can be exported."""
    return [str(id) for id in range(count)]
