"""Import of a MarianMT checkpoint of transformers. A side is the encoder or the decoder."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.config.load import Config, check_config
from regard.core.errors import UserError
from regard.data.tensors.special import PAD, UNK
from regard.data.tokenizers.marian import MarianTokenizer
from regard.exchange.importing.generation import renormalizes, search_settings
from regard.exchange.importing.marian_config import SIDES, check_supported, model_settings
from regard.exchange.importing.marian_tokens import MarianTokens, added, read_tokens
from regard.exchange.importing.marian_weights import Tensors, position_table, side_weights, tables
from regard.exchange.importing.torch_checkpoint import Checkpoint, read_checkpoint, read_weights
from regard.inputs.text import TextInput
from regard.tasks.transduce import TransduceTask

RATIO = 4.0  # output tokens per source token if no maximum length is set


@dataclass(frozen=True)
class Imported:
    """A model, its configuration and task, and notes for the user."""

    config: Config
    task: TransduceTask
    model: nn.Module
    notes: list[str]


def import_marian(folder: Path) -> Imported:
    """Import a checkpoint folder. Raise UserError if the model is not supported."""
    checkpoint = read_checkpoint(folder)
    check_supported(checkpoint)
    source, target, notes = _tokens(checkpoint)
    pad = target.rows[PAD]
    disabled = [PAD] if renormalizes(checkpoint.generation, pad) else []
    tensors = Tensors(read_weights(folder))
    found = tables(tensors, checkpoint.config, source, target, disabled)
    for side in SIDES:
        table = position_table(tensors, side, checkpoint.config["d_model"])
        if table is not None:
            found[f"{side}.positions.weight"] = table
    model = _model(checkpoint, found)
    search, more = search_settings(checkpoint.generation, {pad, target.rows[UNK]})
    config = check_config({"task": _task_settings(found), "model": model, "search": search}, "")
    for side in SIDES:
        found |= side_weights(tensors, side, getattr(config.model, side))
    tensors.done(folder)
    task = _task(checkpoint, config, source, target)
    return Imported(config, task, _filled(task, config, found), notes + more)


def _tokens(checkpoint: Checkpoint) -> tuple[MarianTokens, MarianTokens, list[str]]:
    """Return the vocabularies of source and target, and notes for the user."""
    config = checkpoint.config
    start, size = config["decoder_start_token_id"], config["vocab_size"]
    apart = checkpoint.tokenizer.get("separate_vocabs", False)
    name = "target_vocab.json" if apart else "vocab.json"
    theirs = config.get("decoder_vocab_size") or size
    if not 0 <= start < theirs:
        raise UserError(
            f"{checkpoint.folder / 'config.json'}: decoder_start_token_id={start}: expected a row "
            f"below {theirs:,}"
        )
    source = read_tokens(checkpoint, "vocab.json", size, None if apart else start)
    target = read_tokens(checkpoint, name, theirs, start)
    pad, _, _, eos, *_ = target.rows
    for key, row in (("pad_token_id", pad), ("eos_token_id", eos)):
        if config[key] != row:
            raise UserError(
                f"{checkpoint.folder / 'config.json'}: {key}={config[key]}, but the tokenizer's is "
                f"{row} in {name}; the files belong to different models"
            )
    notes = []
    if target.unnamed:
        notes.append(f"{target.unnamed} rows of the tables have no token in {name}")
    if tokens := added(checkpoint.tokenizer):
        notes.append(f"added tokens such as {tokens[0]} are not recognized in texts")
    return source, target, notes


def _model(checkpoint: Checkpoint, found: dict[str, Tensor]) -> dict[str, Any]:
    """Return the settings `model` of regard. found: the weights so far, by our names."""
    lengths = {
        side: len(found[name]) for side in SIDES if (name := f"{side}.positions.weight") in found
    }
    if checkpoint.config.get("static_position_embeddings") is False and len(lengths) < len(SIDES):
        raise UserError(
            f"{checkpoint.folder}: static_position_embeddings=false, but the learned positions "
            "(model.encoder.embed_positions.weight and the decoder's) are missing"
        )
    return model_settings(checkpoint.config, found, lengths)


def _task_settings(found: dict[str, Tensor]) -> dict[str, Any]:
    """Return the settings `task` of regard. found: the weights so far, by our names."""
    side: dict[str, Any] = {
        "tokenizer": "marian",
        "vocab_size": None,
        "normalization": "none",
    }
    source = {"kind": "text", **side, "lowercase": False}
    shared = "target.weight" not in found
    task = {"kind": "transduce", "source": source, "target": side}
    return {**task, "shared_vocab": shared, "metric": "bleu"}


def _task(
    checkpoint: Checkpoint, config: Config, source: MarianTokens, target: MarianTokens
) -> TransduceTask:
    """Return the task, which has both tokenizers and the length limit."""
    cut = MarianTokenizer.load(checkpoint.path("source.spm"), source.tokens)
    joined = MarianTokenizer.load(checkpoint.path("target.spm"), target.tokens)
    longest = config.search.max_length
    ratio = RATIO if longest is None else float(longest)  # too large to limit outputs
    read = TextInput(cut, lowercase=False, add_bos=False)
    return TransduceTask(
        read, joined, config.task.metric, ratio, None, bool(config.task.shared_vocab)
    )


def _filled(task: TransduceTask, config: Config, found: dict[str, Tensor]) -> nn.Module:
    """Return the model with these weights."""
    model = task.build(config.model)
    own = dict(model.named_parameters())
    assert set(own) == set(found), set(own) ^ set(found)
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(found[name])
    return model.eval()
