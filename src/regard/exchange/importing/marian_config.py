"""The settings of a Marian model. One error reports all unsupported settings."""

from typing import Any

from regard.core.errors import UserError
from regard.exchange.importing.torch_checkpoint import Checkpoint, Metadata

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "silu", "swish": "silu"}
SIDES = ("encoder", "decoder")
SIZES = ("layers", "attention_heads", "ffn_dim")
NUMBERS = ("d_model", "vocab_size", "pad_token_id", "eos_token_id", "decoder_start_token_id")
UNSUPPORTED = {  # older settings, which no Marian model of transformers uses
    "normalize_before": "pre-norm",
    "normalize_embedding": "a norm after the embeddings",
    "add_final_layer_norm": "a norm after the last layer",
}


def check_supported(checkpoint: Checkpoint) -> None:
    """Raise UserError for unsupported or missing settings."""
    config, where = checkpoint.config, checkpoint.folder / "config.json"
    kind = config.get("model_type")
    if kind != "marian":
        raise UserError(f"{where}: expected model_type 'marian', found {kind!r}")
    reasons = [*_wrong_numbers(config), *_wrong_tokenizer(checkpoint)]
    activation = config.get("activation_function")
    if activation not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        reasons.append(f"activation_function={activation}: expected {known}")
    reasons += [
        f"{key}=true: {what}, which no Marian model of transformers has"
        for key, what in UNSUPPORTED.items()
        if config.get(key)
    ]
    if config.get("is_encoder_decoder") is False:
        reasons.append("is_encoder_decoder=false: expected an encoder-decoder")
    if config.get("quantization_config"):
        reasons.append("quantization_config: not supported; save the model unquantized")
    if reasons:
        lines = "\n".join(f"  {reason}" for reason in reasons)
        raise UserError(f"{where}: this model cannot be imported\n{lines}")


def _wrong_numbers(config: Metadata) -> list[str]:
    """Return a message for each size or id that is missing or inconsistent."""
    names = [*NUMBERS, *(f"{side}_{size}" for side in SIDES for size in SIZES)]
    found = [
        f"{name}: expected an integer, found {config.get(name)!r}"
        for name in names
        if type(config.get(name)) is not int or config[name] < 0
    ]
    if found:
        return found
    width = config["d_model"]
    return [
        f"{side}_attention_heads={heads}: does not divide d_model={width}"
        for side in SIDES
        if not (heads := config[f"{side}_attention_heads"]) or width % heads
    ]


def _wrong_tokenizer(checkpoint: Checkpoint) -> list[str]:
    """Return a message for each unsupported setting of the tokenizer."""
    found = []
    if checkpoint.tokenizer.get("sp_model_kwargs"):
        kwargs = checkpoint.tokenizer["sp_model_kwargs"]
        found.append(f"sp_model_kwargs={kwargs}: only the most probable segmentation is supported")
    shared = checkpoint.config.get("share_encoder_decoder_embeddings", True)
    if shared and checkpoint.tokenizer.get("separate_vocabs"):
        found.append("separate_vocabs=true: conflicts with share_encoder_decoder_embeddings=true")
    return found


def model_settings(config: Metadata, tables: Metadata, lengths: dict[str, int]) -> dict[str, Any]:
    """Return the settings `model` of regard.

    tables: embeddings and output weights by our names. lengths: the number of learned positions of
    encoder and decoder, if they have any.
    """
    shared = {
        "kind": "transformer",
        "width": config["d_model"],
        "dropout": config.get("dropout", 0.0),
        "norm": "layer",
        "norm_position": "post",
        "activation": ACTIVATIONS[config["activation_function"]],
        "embedding_scale": bool(config.get("scale_embedding", False)),
    }
    sides = {
        side: shared
        | {
            "layers": config[f"{side}_layers"],
            "heads": config[f"{side}_attention_heads"],
            "feedforward_width": config[f"{side}_ffn_dim"],
            "positions": _positions(lengths.get(side)),
        }
        for side in SIDES
    }
    head = {"tie_embeddings": "head.weight" not in tables, "output_bias": True}
    return {"frontend": {"kind": "tokens"}, **sides, **head, "embedding_width": 0}


def _positions(length: int | None) -> dict[str, Any]:
    if length is None:
        return {"kind": "sinusoidal", "layout": "halves"}
    return {"kind": "learned", "length": length}
