"""Tokenizer options, and their automatic choice, for all tasks that read text.

A side of the data is its sources or its targets. The functions set unset options in a tree (nested
dicts of options) or a section of it. They append their choices to `auto_settings`.
"""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from regard.core.errors import UserError
from regard.core.options import AutoSetting, Options
from regard.data.checks.column import side_texts
from regard.data.reading.read import Pair
from regard.data.tokenizers.amount import amount_of
from regard.data.tokenizers.subword import default_size
from regard.data.tokenizers.tokenizer_choice import choose_tokenizer

TokenizerKind = Literal["auto", "char", "word", "whitespace", "bpe", "unigram", "marian"]
SUBWORDS = ("bpe", "unigram")  # subword tokenizers trained on the data, not imported


class SideOptions(Options):
    """Options of the tokenizer of one side."""

    tokenizer: TokenizerKind = Field(
        "auto", description="tokenizer; auto selects one from the data"
    )
    vocab_size: int | None = Field(None, gt=5, description="size of a word or subword vocabulary")


def choose_side(
    section: dict[str, Any], path: str, texts: Sequence[str], auto_settings: list[AutoSetting]
) -> None:
    """Set the tokenizer of a side, if it is auto. path: config path of the section."""
    if section["tokenizer"] == "auto":
        kind, reason = choose_tokenizer(texts)
        section["tokenizer"] = kind
        auto_settings.append(AutoSetting(f"{path}.tokenizer", kind, reason))


def choose_size(
    section: dict[str, Any], path: str, texts: Sequence[str], auto_settings: list[AutoSetting]
) -> None:
    """Set the size of a subword vocabulary, if it is unset. path: config path of the section."""
    if section["tokenizer"] in SUBWORDS and section["vocab_size"] is None:
        section["vocab_size"] = default_size(texts)
        auto_settings.append(
            AutoSetting(f"{path}.vocab_size", section["vocab_size"], "by amount of text")
        )


def choose_sides(
    tree: dict[str, Any], pairs: Sequence[Pair], auto_settings: list[AutoSetting]
) -> None:
    """Set tokenizers, vocabulary sizes, shared_vocab and metric for both sides, if unset."""
    texts = {side: side_texts(pairs, side) for side in ("source", "target")}
    for side in texts:
        choose_side(tree[side], f"task.{side}", texts[side], auto_settings)
    kinds = [tree[side]["tokenizer"] for side in texts]
    if tree["shared_vocab"] is None:
        sizes = {tree[side]["vocab_size"] for side in texts} - {None}
        alike = kinds[0] == kinds[1] and kinds[0] in SUBWORDS and len(sizes) < 2
        share = alike and _same_script(texts)
        tree["shared_vocab"] = share
        if share:
            reason = "both sides use the same characters"
            auto_settings.append(AutoSetting("task.shared_vocab", True, reason))
            for side in texts:
                tree[side]["vocab_size"] = next(iter(sizes), None)
    for side in texts:
        counted = side_texts(pairs, *texts) if tree["shared_vocab"] else texts[side]
        choose_size(tree[side], f"task.{side}", counted, auto_settings)
    choose_metric(tree)
    source, target = ({key: tree[s][key] for key in ("tokenizer", "vocab_size")} for s in texts)
    if tree["shared_vocab"] and source != target:
        raise UserError(
            "task.shared_vocab: both sides need the same tokenizer and vocab_size: the source has "
            f"{source}, the target {target}"
        )


def choose_target(
    tree: dict[str, Any], texts: Sequence[str], auto_settings: list[AutoSetting]
) -> None:
    """Set tokenizer, vocabulary size, shared_vocab and metric if only the targets are texts."""
    if tree["shared_vocab"]:
        raise UserError("task.shared_vocab: only texts can share a vocabulary")
    tree["shared_vocab"] = False
    choose_side(tree["target"], "task.target", texts, auto_settings)
    choose_size(tree["target"], "task.target", texts, auto_settings)
    choose_metric(tree)


def choose_metric(tree: dict[str, Any]) -> None:
    """Set the metric, if unset: BLEU for word, bpe and unigram targets, otherwise exact match."""
    if tree["metric"] is None:
        words = tree["target"]["tokenizer"] in (*SUBWORDS, "word")
        tree["metric"] = "bleu" if words else "exact_match"


def _same_script(texts: dict[str, Sequence[str]]) -> bool:
    """Return whether both sides share at least half of all their characters."""
    left, right = (set(amount_of(side).characters) for side in texts.values())
    return len(left & right) >= 0.5 * len(left | right)
