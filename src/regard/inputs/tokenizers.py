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
from regard.data.tokenizers.normalized import choose_normalization, normalized
from regard.data.tokenizers.subword import default_size
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.data.tokenizers.tokenizer_choice import choose_tokenizer

TokenizerKind = Literal[
    "auto", "char", "char_features", "word", "whitespace", "bpe", "unigram", "marian"
]
Normalization = Literal["auto", "none", "nfc", "nfd"]
NORMALIZATION_MEANING = "Unicode normalization; auto: nfd for Hangul read as characters, or none"
SUBWORDS = ("bpe", "unigram")  # subword tokenizers trained on the data, not imported


class SideOptions(Options):
    """Options of the tokenizer of one side."""

    tokenizer: TokenizerKind = Field(
        "auto", description="tokenizer; auto selects one from the data"
    )
    vocab_size: int | None = Field(None, gt=5, description="size of a word or subword vocabulary")
    normalization: Normalization = Field("auto", description=NORMALIZATION_MEANING)


def choose_side(
    section: dict[str, Any],
    path: str,
    texts: Sequence[str],
    auto_settings: list[AutoSetting],
    closed: bool = False,
) -> None:
    """Set the tokenizer of a side, if it is auto. path: config path of the section.

    closed: whether texts with a closed vocabulary are split at whitespace.
    """
    if section["tokenizer"] == "auto":
        kind, reason = choose_tokenizer(texts, closed)
        section["tokenizer"] = kind
        auto_settings.append(AutoSetting(f"{path}.tokenizer", kind, reason))


def choose_form(
    section: dict[str, Any], path: str, texts: Sequence[str], auto_settings: list[AutoSetting]
) -> None:
    """Set the normalization of a side, if it is auto. path: config path of the section."""
    if section["normalization"] == "auto":
        form, reason = choose_normalization(section["tokenizer"], texts)
        section["normalization"] = form
        if form != "none":
            auto_settings.append(AutoSetting(f"{path}.normalization", form, reason))


def choose_size(
    section: dict[str, Any], path: str, texts: Sequence[str], auto_settings: list[AutoSetting]
) -> None:
    """Set the size of a subword vocabulary, if it is unset. path: config path of the section."""
    if section["tokenizer"] in SUBWORDS and section["vocab_size"] is None:
        section["vocab_size"] = default_size(
            normalized(texts, section.get("normalization", "none"))
        )
        auto_settings.append(
            AutoSetting(f"{path}.vocab_size", section["vocab_size"], "by amount of text")
        )


def choose_sides(
    tree: dict[str, Any], pairs: Sequence[Pair], auto_settings: list[AutoSetting]
) -> None:
    """Set tokenizers, vocabulary sizes, shared_vocab and metric for both sides, if unset."""
    texts = {side: side_texts(pairs, side) for side in ("source", "target")}
    for side in texts:
        choose_side(tree[side], f"task.{side}", texts[side], auto_settings, closed=True)
    kinds = [tree[side]["tokenizer"] for side in texts]
    if tree["shared_vocab"] is None:
        sizes = {tree[side]["vocab_size"] for side in texts} - {None}
        forms = {tree[side]["normalization"] for side in texts} - {"auto"}
        alike = kinds[0] == kinds[1] and kinds[0] in SUBWORDS
        share = alike and len(sizes) < 2 and len(forms) < 2 and _same_script(texts)
        tree["shared_vocab"] = share
        if share:
            reason = "both sides use the same characters"
            auto_settings.append(AutoSetting("task.shared_vocab", True, reason))
            for side in texts:
                tree[side]["vocab_size"] = next(iter(sizes), None)
                tree[side]["normalization"] = next(iter(forms), "auto")
    for side in texts:
        counted = side_texts(pairs, *texts) if tree["shared_vocab"] else texts[side]
        choose_form(tree[side], f"task.{side}", counted, auto_settings)
        choose_size(tree[side], f"task.{side}", counted, auto_settings)
    choose_metric(tree)
    source, target = ({key: tree[s][key] for key in SideOptions.model_fields} for s in texts)
    if tree["shared_vocab"] and source != target:
        raise UserError(
            "task.shared_vocab: both sides need the same tokenizer, vocab_size and normalization: "
            f"the source has {source}, the target {target}"
        )


def choose_target(
    tree: dict[str, Any], texts: Sequence[str], auto_settings: list[AutoSetting]
) -> None:
    """Set tokenizer, vocabulary size, shared_vocab and metric if only the targets are texts."""
    if tree["shared_vocab"]:
        raise UserError("task.shared_vocab: only texts can share a vocabulary")
    tree["shared_vocab"] = False
    choose_side(tree["target"], "task.target", texts, auto_settings, closed=True)
    choose_form(tree["target"], "task.target", texts, auto_settings)
    choose_size(tree["target"], "task.target", texts, auto_settings)
    choose_metric(tree)


def tokenizer_settings(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the options of a side that reuses a tokenizer."""
    return {
        "tokenizer": tokenizer.kind,
        "vocab_size": None,
        "normalization": tokenizer.normalization,
    }


def check_form(path: str, requested: str, known: str) -> None:
    """Raise UserError if the normalization of a pretrained model differs from the requested one."""
    if requested not in ("auto", known):
        raise UserError(
            f"{path}.normalization: expected {known} as in --init-from, found {requested}"
        )


def choose_metric(tree: dict[str, Any]) -> None:
    """Set the metric, if unset: BLEU for word, bpe and unigram targets, otherwise exact match."""
    if tree["metric"] is None:
        words = tree["target"]["tokenizer"] in (*SUBWORDS, "word")
        tree["metric"] = "bleu" if words else "exact_match"


def _same_script(texts: dict[str, Sequence[str]]) -> bool:
    """Return whether both sides share at least half of all their characters."""
    left, right = (set(amount_of(side).characters) for side in texts.values())
    return len(left & right) >= 0.5 * len(left | right)
