"""How good are given tags: token by token, and as the spans that BIO and BIOES tags stand for.

Spans are read as the script of the CoNLL shared tasks reads them (conlleval, Tjong Kim Sang and
Buchholz 2000): a span right in its bounds and its type is a hit, anything else is not.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from regard.core.errors import UserError
from regard.metrics.label_metrics import Hits, find_hits, micro_f1
from regard.metrics.numbers import Floats, Measured, check_examples, percent

Tags = Sequence[Sequence[str]]  # for each sentence a tag a token
Span = tuple[int, int, str]  # first token, token after the last, type

_SAME = {"L": "E", "U": "S"}  # BILOU has other letters for last and unit than BIOES
_MARKS = set("BIESLU")


def spans(tags: Sequence[str]) -> set[Span]:
    """The spans of a tagged sentence as (first token, token after the last, type).

    Lenient as conlleval: a span begins wherever a tag is inside one but cannot go on with the one
    before, so `I-` without `B-` begins one, and so does a change of type.
    """
    found = set()
    begin, before, open_kind = 0, "O", ""
    for place, tag in enumerate([*tags, "O"]):
        mark, _, kind = tag.partition("-")
        mark = _SAME.get(mark, mark) if mark in _MARKS else "O"
        goes_on = mark in "IE" and before in "BI" and kind == open_kind
        if before != "O" and not goes_on:
            found.add((begin, place, open_kind))
        if mark != "O" and not goes_on:
            begin, open_kind = place, kind
        before = mark
    return found


def is_span_scheme(tags: Iterable[str]) -> bool:
    """Whether these tags mark spans: all are `O` or `B-`, `I-`, `E-`, `S-`, `L-`, `U-` with a type.

    Plain `B`, `I` and `O` count too, if there are no others: spans without a type.
    """
    names = set(tags)
    if {"B", "I"} <= names <= {"B", "I", "O"}:
        return True
    parts = [name.partition("-") for name in names - {"O"}]
    fits = all(mark in _MARKS and kind for mark, _, kind in parts)
    return fits and any(mark in {"B", "I", "S", "U"} for mark, _, _ in parts)


def span_table(predicted: Tags, wanted: Tags) -> list[dict[str, Any]]:
    """For each type of span, the most wanted first, its counts, precision, recall and F1."""
    return span_hits(predicted, wanted).table()


def measure_tags(
    predicted: Tags, wanted: Tags, tokens: Sequence[Sequence[str]], known: Callable[[str], bool]
) -> Measured:
    """The measures of all tags together, 0 to 100.

    - `accuracy`: of tokens.
    - `f1`: of spans, if the wanted tags mark spans; 0 where there is nothing to find and nothing
      found, as in conlleval.
    - `oov_accuracy`: of the tokens that are not `known`, if there is one.
    - `sentence_accuracy`: sentences with every tag right.
    """
    _check(predicted, wanted)
    _check_tokens(tokens, wanted)
    rows = []  # for each sentence: tokens right, tokens, unseen right, unseen, is all right
    for given, right, words in zip(predicted, wanted, tokens, strict=True):
        same = [first == second for first, second in zip(given, right, strict=True)]
        unseen = [hit for hit, word in zip(same, words, strict=True) if not known(word)]
        rows.append([sum(same), len(same), sum(unseen), len(unseen), all(same)])
    table = np.array(rows, np.float64)
    has_spans = is_span_scheme({tag for tags in wanted for tag in tags})
    hits = span_hits(predicted, wanted) if has_spans else None

    def scores(times: Floats) -> dict[str, float]:
        right, count, unseen_right, unseen, whole = times @ table
        found = {"accuracy": percent(right, count)}
        if hits is not None:
            found["f1"] = micro_f1(hits.count(times))
        if unseen:
            found["oov_accuracy"] = percent(unseen_right, unseen)
        return found | {"sentence_accuracy": percent(whole, times.sum())}

    return Measured(scores, len(wanted))


def span_hits(predicted: Tags, wanted: Tags) -> Hits:
    """The types of the spans that are right, given and wanted, by sentence."""
    _check(predicted, wanted)
    given, right = [spans(tags) for tags in predicted], [spans(tags) for tags in wanted]
    hits = [first & second for first, second in zip(given, right, strict=True)]
    return find_hits(
        *([[kind for _, _, kind in found] for found in side] for side in (hits, given, right))
    )


def _check(predicted: Tags, wanted: Tags) -> None:
    check_examples(predicted, wanted)
    for number, (given, right) in enumerate(zip(predicted, wanted, strict=True), start=1):
        if len(given) != len(right):
            raise UserError(f"Sentence {number}: {len(right)} tags are wanted, {len(given)} came.")


def _check_tokens(tokens: Sequence[Sequence[str]], wanted: Tags) -> None:
    if len(tokens) != len(wanted):
        raise UserError(f"The tokens of {len(wanted)} sentences are needed, {len(tokens)} came.")
    for number, (words, tags) in enumerate(zip(tokens, wanted, strict=True), start=1):
        if len(words) != len(tags):
            raise UserError(f"Sentence {number}: {len(words)} tokens, {len(tags)} tags.")
