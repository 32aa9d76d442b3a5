"""Check pairs of texts before training: sizes, lengths, vocabulary, likely errors.

A side is the source or the target. Lengths are in tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from regard.core.formatting import count_noun
from regard.data.checks.check_frame import DataCheck, table
from regard.data.checks.side_stats import SideStats, side_stats
from regard.data.checks.survey import IssueCount, Survey
from regard.data.reading.read import Pair
from regard.data.tensors.special import EOS
from regard.data.tokenizers.tokenizer import Tokenizer

MAX_SHOWN = 5
MAX_COPIES = 0.05  # below this fraction, copies look like untranslated lines; above, like the task


@dataclass
class Check(DataCheck):
    """The result of checking pairs of texts."""

    pairs: int
    sources: int
    multi_target_sources: int  # sources with several distinct targets
    dev_pairs: int
    dev_sources: int
    overlap: int  # dev sources that are also in train
    duplicates: IssueCount  # pairs that repeat an earlier pair
    source: SideStats
    target: SideStats
    outliers: list[tuple[int, int, int]]  # line, source length, target length; most extreme first
    copies: IssueCount  # pairs whose target equals the source
    limit: int | None
    over_limit: int
    over_99: int  # pairs with a side longer than the 99th percentile of this side

    def sections(self) -> list[list[str]]:
        return [_counts(self), _sides(self)]

    def summary(self) -> list[str]:
        counts = f"train {self.pairs:,} pairs ({self.sources:,} sources), dev {self.dev_pairs:,}"
        sides = [
            f"{name}: {side.tokenizer}, {side.vocab_size:,} tokens in vocabulary, length "
            f"p50 {side.lengths[50]}, p99 {side.lengths[99]}, max {side.lengths[100]}"
            for name, side in (("source", self.source), ("target", self.target))
        ]
        return [counts, *sides]


def check(
    train: Sequence[Pair],
    dev: Sequence[Pair],
    source: Tokenizer,
    target: Tokenizer,
    limit: int | None,
    lengths: np.ndarray | None = None,
) -> Check:
    """Check the training and dev set.

    limit: maximum number of tokens of a side. lengths: (N, 2), number of source and target tokens
    of the training pairs, if known.
    """
    survey = Survey(train)
    if lengths is None:
        lengths = _lengths(train, source, target)
    source_stats = side_stats(survey.source, lengths[:, 0], [pair.source for pair in dev], source)
    target_stats = side_stats(survey.target, lengths[:, 1], [pair.target for pair in dev], target)
    limits = source_stats.lengths[99], target_stats.lengths[99]
    over_99 = (lengths > limits).any(1)
    dev_sources = {pair.source for pair in dev}
    result = Check(
        pairs=len(train),
        sources=len(survey.sources),
        multi_target_sources=survey.multi_target_sources,
        dev_pairs=len(dev),
        dev_sources=len(dev_sources),
        overlap=survey.count_known(dev_sources),
        duplicates=survey.duplicates,
        source=source_stats,
        target=target_stats,
        outliers=_outliers(survey.lines, lengths),
        copies=survey.copies,
        limit=limit,
        over_limit=0 if limit is None else int((lengths > limit).any(1).sum()),
        over_99=int(over_99.sum()),
    )
    result.warnings = list(_warnings(result))
    return result


def load_check(values: dict[str, Any]) -> Check:
    """Return the check from the dict that `as_dict` returned."""
    return TypeAdapter(Check).validate_python(values)


def _lengths(pairs: Sequence[Pair], source: Tokenizer, target: Tokenizer) -> np.ndarray:
    """Return the number of source and target tokens of each pair: (N, 2)."""
    texts = ([pair.source for pair in pairs], [pair.target for pair in pairs])
    sides = zip(texts, (source, target), strict=True)
    return np.stack([tokenizer.encode_flat(side, EOS)[1] - 1 for side, tokenizer in sides], 1)


def _outliers(lines: np.ndarray, lengths: np.ndarray) -> list[tuple[int, int, int]]:
    """Return line, source length and target length of pairs with an unusual length ratio.

    The ratio differs from the median by a factor above 3, and its logarithm by more than 6 robust
    standard deviations (1.48 times the median absolute deviation).
    """
    nonempty = np.flatnonzero(lengths.all(1))
    if len(nonempty) < MAX_SHOWN:
        return []
    # Add one, so that 1 to 3 tokens is a smaller ratio than 10 to 30.
    sides = lengths[nonempty].astype(np.float64) + 1
    ratios = sides[:, 1] / sides[:, 0]
    np.log(ratios, out=ratios)
    ratios -= np.median(ratios)
    np.abs(ratios, out=ratios)
    bound = max(math.log(3), 6 * 1.48 * float(np.median(ratios)))
    rows = [(i, nonempty[i]) for i in np.flatnonzero(ratios > bound)]
    found = [(-float(ratios[i]), int(lines[row]), *lengths[row].tolist()) for i, row in rows]
    return [(line, source, target) for _, line, source, target in sorted(found)]


def _warnings(found: Check) -> Iterator[str]:
    """Yield a warning with a count for each issue that the user may want to fix."""
    sides = (("source", found.source), ("target", found.target))
    for name, side in sides:
        yield from _issue(side.empty, "pair", f" with an empty {name}, skipped in training")
    if found.over_limit:
        yield (
            f"{count_noun(found.over_limit, 'pair')} longer than {found.limit} tokens "
            f"({found.over_limit / found.pairs:.1%}), skipped in training"
        )
    if found.overlap:
        yield (
            f"{found.overlap:,} of {found.dev_sources:,} dev sources also occur in train "
            "(data leakage)"
        )
    for name, side in sides:
        if side.unknown_tokens:
            yield (
                f"{side.unknown_tokens:,} of {side.dev_tokens:,} dev {name} tokens are out of "
                f"vocabulary ({side.unknown_tokens / side.dev_tokens:.2%}), in "
                f"{side.unknown_examples:,} pairs; most frequent: {_list(side.unknown)}"
            )
    yield from _issue(found.duplicates, "duplicate pair", "")
    for name, side in sides:
        yield from _issue(side.control, name, " with control or invisible characters")
        yield from _issue(
            side.replacement,
            name,
            " with U+FFFD, the replacement character of a decoding error",
        )
        yield from _issue(side.edge_whitespace, name, " with leading or trailing whitespace")
        if side.tokenizer == "whitespace":
            yield from _issue(side.double_spaces, name, " with double spaces, read as one")
        yield from _issue(side.not_nfc, name, " not in Unicode form NFC")
    if found.outliers:
        examples = ", ".join(
            f"line {line} ({source} source, {target} target tokens)"
            for line, source, target in found.outliers[:MAX_SHOWN]
        )
        pairs = count_noun(len(found.outliers), "pair")
        yield f"{pairs} with an unusual length ratio, e.g. {examples}"
    if found.copies.count < MAX_COPIES * found.pairs:
        yield from _issue(found.copies, "target", " identical to the source")


def _issue(issue: IssueCount, noun: str, what: str) -> Iterator[str]:
    if issue.count:
        yield f"{count_noun(issue.count, noun)}{what} (first: line {issue.line})"


def _counts(found: Check) -> list[str]:
    copied = found.copies.count / max(1, found.pairs)
    rows = [
        ("train pairs", f"{found.pairs:,}"),
        (
            "train sources",
            f"{found.sources:,}, {found.multi_target_sources:,} with several targets",
        ),
        ("dev pairs", f"{found.dev_pairs:,}"),
        ("dev sources", f"{found.dev_sources:,}, {found.overlap:,} also in train"),
        ("duplicate pairs", f"{found.duplicates.count:,}"),
        ("target = source", f"{found.copies.count:,} ({copied:.1%})"),
        ("length-ratio outliers", f"{len(found.outliers):,}"),
        ("above 99th percentile", f"{found.over_99:,} pairs"),
    ]
    if found.limit is not None:
        rows.append((f"above {found.limit} tokens", f"{found.over_limit:,} pairs"))
    return table(rows, 28)


def _sides(found: Check) -> list[str]:
    columns = zip(ROW_NAMES, _rows(found.source), _rows(found.target), strict=True)
    rows = [("", "source", "target"), *columns]
    width = max(len(row[1]) for row in rows) + 2
    return [f"{name:<28}{left:<{width}}{right}".rstrip() for name, left, right in rows]


ROW_NAMES = (
    *("tokenizer", "vocabulary size", "length p50", "length p90", "length p99", "length max"),
    *("distinct characters", "scripts", "rare characters", "unknown in dev"),
    *("empty", "control characters", "U+FFFD", "whitespace at the ends", "double spaces"),
    "not NFC",
)


def _rows(side: SideStats) -> list[str]:
    """Return the table cells of one side, in the order of ROW_NAMES."""
    scripts = [f"{script} {fraction:.1%}" for script, fraction in side.scripts.items()]
    issues = (side.empty, side.control, side.replacement, side.edge_whitespace)
    return [
        *(side.tokenizer, f"{side.vocab_size:,}"),
        *(f"{length:,}" for length in side.lengths.values()),
        *(f"{side.characters:,}", ", ".join(scripts[:3]) or "-"),
        f"{len(side.rare):,}" + (f": {_list(side.rare)}" if side.rare else ""),
        f"{side.unknown_tokens:,} of {side.dev_tokens:,}",
        *(f"{issue.count:,}" for issue in (*issues, side.double_spaces, side.not_nfc)),
    ]


def _list(tokens: dict[str, int]) -> str:
    """Return the first tokens, with unprintable tokens as code points."""
    shown = [
        token if token.isprintable() and token.strip() else f"U+{ord(token[0]):04X}"
        for token in list(tokens)[:MAX_SHOWN]
    ]
    return " ".join(shown) + (" ..." if len(tokens) > MAX_SHOWN else "")
