"""Metrics for predicted tags: per token, and per span of BIO or BIOES tags.

Spans are scored as by conlleval, the script of the CoNLL shared tasks (Tjong Kim Sang and Buchholz
2000). A span is correct if its bounds and its type match.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from regard.core.errors import UserError
from regard.metrics.label_metrics import LabelHits, find_hits, micro_f1
from regard.metrics.numbers import Floats, WeightedScores, check_examples, percent

Tags = Sequence[Sequence[str]]  # per sentence, one tag per token
Span = tuple[int, int, str]  # first token, token after the last, type

_BILOU = {"L": "E", "U": "S"}  # BILOU prefixes and their names in BIOES
_PREFIXES = set("BIESLU")


def spans(tags: Sequence[str]) -> set[Span]:
    """Return the spans of a tagged sentence as (first token, token after the last, type).

    Invalid tag sequences are accepted, as in conlleval: a tag that cannot continue the previous
    span starts a new one. Examples are `I-` after `O`, and `I-` with another type.
    """
    found = set()
    start, previous, open_type = 0, "O", ""
    for position, tag in enumerate([*tags, "O"]):
        prefix, _, type = tag.partition("-")
        prefix = _BILOU.get(prefix, prefix) if prefix in _PREFIXES else "O"
        continues = prefix in "IE" and previous in "BI" and type == open_type
        if previous != "O" and not continues:
            found.add((start, position, open_type))
        if prefix != "O" and not continues:
            start, open_type = position, type
        previous = prefix
    return found


def is_span_scheme(tags: Iterable[str]) -> bool:
    """Return whether tags mark spans, as in BIO, BIOES or BILOU.

    Every tag must be `O`, or a type after `B-`, `I-`, `E-`, `S-`, `L-` or `U-`. Spans without a
    type are also accepted: only the tags `B`, `I` and `O`.
    """
    names = set(tags)
    if {"B", "I"} <= names <= {"B", "I", "O"}:
        return True
    parts = [name.partition("-") for name in names - {"O"}]
    fits = all(prefix in _PREFIXES and type for prefix, _, type in parts)
    return fits and any(prefix in {"B", "I", "S", "U"} for prefix, _, _ in parts)


def span_table(y_pred: Tags, y_true: Tags) -> list[dict[str, Any]]:
    """Return counts, precision, recall and F1 per span type, most frequent reference type first."""
    return span_hits(y_pred, y_true).table()


def measure_tags(
    y_pred: Tags, y_true: Tags, tokens: Sequence[Sequence[str]], known: Callable[[str], bool]
) -> WeightedScores:
    """Return the metrics over all tags, from 0 to 100.

    - `accuracy`: fraction of tokens with the correct tag.
    - `f1`: micro-averaged F1 of spans, if the reference tags mark spans. It is 0 if there are no
      spans, as in conlleval.
    - `oov_accuracy`: accuracy on out-of-vocabulary tokens (`known` returns False), if any.
    - `sentence_accuracy`: fraction of sentences with all tags correct.
    """
    _check(y_pred, y_true)
    _check_tokens(tokens, y_true)
    rows = []  # per sentence: correct tokens, tokens, correct OOV tokens, OOV tokens, all correct
    for predicted, expected, words in zip(y_pred, y_true, tokens, strict=True):
        correct = [one == other for one, other in zip(predicted, expected, strict=True)]
        oov = [hit for hit, word in zip(correct, words, strict=True) if not known(word)]
        rows.append([sum(correct), len(correct), sum(oov), len(oov), all(correct)])
    table = np.array(rows, np.float64)
    has_spans = is_span_scheme({tag for tags in y_true for tag in tags})
    hits = span_hits(y_pred, y_true) if has_spans else None

    def scores(weights: Floats) -> dict[str, float]:
        correct, count, oov_correct, oov, all_correct = weights @ table
        found = {"accuracy": percent(correct, count)}
        if hits is not None:
            found["f1"] = micro_f1(hits.count(weights))
        if oov:
            found["oov_accuracy"] = percent(oov_correct, oov)
        return found | {"sentence_accuracy": percent(all_correct, weights.sum())}

    return WeightedScores(scores, len(y_true))


def span_hits(y_pred: Tags, y_true: Tags) -> LabelHits:
    """Return `LabelHits` for the types of correct, predicted and expected spans."""
    _check(y_pred, y_true)
    predicted, expected = [spans(tags) for tags in y_pred], [spans(tags) for tags in y_true]
    correct = [one & other for one, other in zip(predicted, expected, strict=True)]
    sides = (correct, predicted, expected)
    return find_hits(*([[type for _, _, type in found] for found in side] for side in sides))


def _check(y_pred: Tags, y_true: Tags) -> None:
    check_examples(y_pred, y_true)
    for number, (predicted, expected) in enumerate(zip(y_pred, y_true, strict=True), start=1):
        if len(predicted) != len(expected):
            raise UserError(
                f"sentence {number}: expected {len(expected)} tags, found {len(predicted)}"
            )


def _check_tokens(tokens: Sequence[Sequence[str]], y_true: Tags) -> None:
    if len(tokens) != len(y_true):
        raise UserError(f"expected the tokens of {len(y_true)} sentences, found {len(tokens)}")
    for number, (words, tags) in enumerate(zip(tokens, y_true, strict=True), start=1):
        if len(words) != len(tags):
            raise UserError(f"sentence {number}: {len(words)} tokens, but {len(tags)} tags")
