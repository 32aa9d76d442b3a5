"""The settings of a Marian model as ours; what we cannot do is refused by name, all at once."""

from typing import Any

from regard.core.errors import UserError
from regard.exchange.importing.torch_checkpoint import Checkpoint, Facts

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "silu", "swish": "silu"}
SIDES = ("encoder", "decoder")
SIZES = ("layers", "attention_heads", "ffn_dim")
NUMBERS = ("d_model", "vocab_size", "pad_token_id", "eos_token_id", "decoder_start_token_id")
NEVER = {  # what older Marian settings may ask for, and no Marian model of transformers does
    "normalize_before": "norms before the branches",
    "normalize_embedding": "a norm after the embeddings",
    "add_final_layer_norm": "a norm after the last layer",
}


def refuse_strangers(checkpoint: Checkpoint) -> None:
    """Refuses settings that cannot be expressed here, or that are missing."""
    config, where = checkpoint.config, checkpoint.folder / "config.json"
    kind = config.get("model_type")
    if kind != "marian":
        raise UserError(f"{where}: model_type marian expected, {kind!r} found: only Marian is read")
    reasons = [*_wrong_numbers(config), *_wrong_tokenizer(checkpoint)]
    activation = config.get("activation_function")
    if activation not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        reasons.append(f"activation_function={activation}: {known} expected")
    reasons += [
        f"{key}=true: {what}, which no Marian model of transformers has"
        for key, what in NEVER.items()
        if config.get(key)
    ]
    if config.get("is_encoder_decoder") is False:
        reasons.append("is_encoder_decoder=false: encoder and decoder expected")
    if config.get("quantization_config"):
        reasons.append(
            "quantization_config: whole numbers are not read; save the model unquantized"
        )
    if reasons:
        lines = "\n".join(f"  {reason}" for reason in reasons)
        raise UserError(f"{where}: this model cannot be imported\n{lines}")


def _wrong_numbers(config: Facts) -> list[str]:
    """Sizes and ids that are missing or do not fit each other."""
    names = [*NUMBERS, *(f"{side}_{size}" for side in SIDES for size in SIZES)]
    found = [
        f"{name}: a whole number expected, {config.get(name)!r} found"
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
    """What the tokenizer would do otherwise."""
    found = []
    if checkpoint.tokenizer.get("sp_model_kwargs"):
        given = checkpoint.tokenizer["sp_model_kwargs"]
        found.append(f"sp_model_kwargs={given}: texts are cut in the most probable way only")
    shared = checkpoint.config.get("share_encoder_decoder_embeddings", True)
    if shared and checkpoint.tokenizer.get("separate_vocabs"):
        found.append("separate_vocabs=true: not with share_encoder_decoder_embeddings=true")
    return found


def model_settings(config: Facts, tables: Facts, lengths: dict[str, int]) -> dict[str, Any]:
    """The section `model`. tables: those that are there; lengths: of learned positions, if any."""
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
