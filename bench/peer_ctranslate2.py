"""Our Transformer's weights as a model of CTranslate2."""

import math
from pathlib import Path

from peer_weights import LENGTH, Parts

from regard.data.vocabulary import BOS, EOS, UNK
from regard.nn.positions import sinusoids


def write_ctranslate2(parts: Parts, folder: Path, quantization: str | None) -> None:
    """A model folder of CTranslate2."""
    from ctranslate2.specs import TransformerSpec

    spec = TransformerSpec.from_config(parts.layers, parts.heads, pre_norm=True)
    table = sinusoids(LENGTH, parts.width).numpy()
    for side, layers in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        _norm(layers.layer_norm, parts, f"{side}.norm")
        embeddings = layers.embeddings[0] if side == "encoder" else layers.embeddings
        embeddings.weight = parts.embeddings.numpy().copy()
        layers.scale_embeddings = math.sqrt(parts.width)
        layers.position_encodings.encodings = table
        for i, layer in enumerate(layers.layer):
            _ctranslate2_layer(layer, parts, f"{side}.layers.{i}.", side == "decoder")
    spec.decoder.projection.weight = parts.embeddings.numpy().copy()
    symbols = [*parts.symbols]
    spec.register_source_vocabulary(symbols)
    spec.register_target_vocabulary(symbols)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = (
        symbols[UNK],
        symbols[BOS],
        symbols[EOS],
    )
    spec.config.decoder_start_token = symbols[BOS]
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


def _ctranslate2_layer(layer: object, parts: Parts, prefix: str, decoder: bool) -> None:
    """One layer; CTranslate2 has our joint projections."""
    attention, feed = layer.self_attention, layer.ffn  # type: ignore[attr-defined]
    _norm(attention.layer_norm, parts, prefix + "attend.norm")
    _linear(attention.linear[0], parts, prefix + "attention.project")
    _linear(attention.linear[1], parts, prefix + "attention.join")
    if decoder:
        cross = layer.attention  # type: ignore[attr-defined]
        _norm(cross.layer_norm, parts, prefix + "look.norm")
        for linear, name in zip(cross.linear, ("query", "project", "join"), strict=True):
            _linear(linear, parts, f"{prefix}cross.{name}")
    _norm(feed.layer_norm, parts, prefix + "feed.norm")
    _linear(feed.linear_0, parts, prefix + "feedforward.widen")
    _linear(feed.linear_1, parts, prefix + "feedforward.narrow")


def _linear(spec: object, parts: Parts, name: str) -> None:
    spec.weight = parts.weights[f"{name}.weight"].numpy().copy()  # type: ignore[attr-defined]
    spec.bias = parts.weights[f"{name}.bias"].numpy().copy()  # type: ignore[attr-defined]


def _norm(spec: object, parts: Parts, name: str) -> None:
    spec.gamma = parts.weights[f"{name}.weight"].numpy().copy()  # type: ignore[attr-defined]
    spec.beta = parts.weights[f"{name}.bias"].numpy().copy()  # type: ignore[attr-defined]
