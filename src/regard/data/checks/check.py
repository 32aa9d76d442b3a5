"""The check of the data before training: what is there, what is odd, what would be dropped."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from regard.data.checks.check_frame import DataCheck, table
from regard.data.checks.side_stats import SideStats, measure_side
from regard.data.checks.survey import IssueCount, Survey
from regard.data.reading.read import Pair
from regard.data.tensors.special import EOS
from regard.data.tokenizers.tokenizer import Tokenizer

SHOWN = 5
FEW_COPIES = 0.05  # copies below this share look like untranslated lines, above like the task


@dataclass
class Check(DataCheck):
    """What was found in pairs of texts."""

    pairs: int
    sources: int
    several: int  # sources with several different targets
    dev_pairs: int
    dev_sources: int
    overlap: int  # dev sources that are also in train
    duplicates: IssueCount  # pairs that repeat an earlier pair exactly
    source: SideStats
    target: SideStats
    outliers: list[tuple[int, int, int]]  # line, source length, target length; oddest first
    copies: IssueCount  # target equals source
    limit: int | None
    over_limit: int
    over_99: int  # pairs with a side longer than 99 in 100 of its kind

    def sections(self) -> list[list[str]]:
        return [_counts(self), _sides(self)]

    def summary(self) -> list[str]:
        counts = f"train {self.pairs:,} pairs ({self.sources:,} sources), dev {self.dev_pairs:,}"
        sides = [
            f"{name}: {side.kind}, {side.vocab_size:,} tokens in the vocabulary, "
            f"half of the texts up to {side.lengths[50]} long, 99 % up to {side.lengths[99]}, "
            f"longest {side.lengths[100]}"
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
    """The figures of train and dev; `limit` is the longest side, in tokens, that may be used.

    lengths: (N, 2) tokens of both sides of train, where they are known.
    """
    survey = Survey(train)
    if lengths is None:
        lengths = _lengths(train, source, target)
    left = measure_side(survey.source, lengths[:, 0], [pair.source for pair in dev], source)
    right = measure_side(survey.target, lengths[:, 1], [pair.target for pair in dev], target)
    over_99 = (lengths[:, 0] > left.lengths[99]) | (lengths[:, 1] > right.lengths[99])
    dev_sources = {pair.source for pair in dev}
    result = Check(
        pairs=len(train),
        sources=len(survey.sources),
        several=survey.several,
        dev_pairs=len(dev),
        dev_sources=len(dev_sources),
        overlap=survey.known(dev_sources),
        duplicates=survey.duplicates,
        source=left,
        target=right,
        outliers=_outliers(survey.lines, lengths),
        copies=survey.copies,
        limit=limit,
        over_limit=0 if limit is None else int((lengths > limit).any(1).sum()),
        over_99=int(over_99.sum()),
    )
    result.warnings = list(_warnings(result))
    return result


def load_check(facts: dict[str, Any]) -> Check:
    """The check that `as_dict` gave, after a way through JSON."""
    return TypeAdapter(Check).validate_python(facts)


def _lengths(pairs: Sequence[Pair], source: Tokenizer, target: Tokenizer) -> np.ndarray:
    """(N, 2): tokens of both sides."""
    sides = ([pair.source for pair in pairs], [pair.target for pair in pairs])
    found = zip(sides, (source, target), strict=True)
    return np.stack([tokenizer.encode_flat(t, EOS)[1] - 1 for t, tokenizer in found], 1)


def _outliers(numbers: np.ndarray, lengths: np.ndarray) -> list[tuple[int, int, int]]:
    """Pairs whose length ratio is far from the usual: at least threefold, and six deviations."""
    whole = np.flatnonzero(lengths.all(1))
    if len(whole) < SHOWN:
        return []
    # One is added so that 1 against 3 tokens counts less than 10 against 30.
    sides = lengths[whole].astype(np.float64) + 1
    ratios = sides[:, 1] / sides[:, 0]
    np.log(ratios, out=ratios)
    ratios -= np.median(ratios)
    np.abs(ratios, out=ratios)
    far = max(math.log(3), 6 * 1.48 * float(np.median(ratios)))
    odd = np.flatnonzero(ratios > far)
    found = [(-float(ratios[i]), int(numbers[whole[i]]), *lengths[whole[i]].tolist()) for i in odd]
    return [(line, one, other) for _, line, one, other in sorted(found)]


def _warnings(found: Check) -> Iterator[str]:
    """Everything that the user may want to mend, each with its count."""
    sides = (("source", found.source), ("target", found.target))
    for name, side in sides:
        yield from _say(side.empty, f"pairs with an empty {name}, which training leaves out")
    if found.over_limit:
        yield (
            f"pairs longer than {found.limit} tokens, which training leaves out: "
            f"{found.over_limit:,} ({found.over_limit / found.pairs:.1%})"
        )
    if found.overlap:
        yield f"dev sources that are in train as well: {found.overlap:,} of {found.dev_sources:,}"
    for name, side in sides:
        if side.unknown_tokens:
            yield (
                f"{name} tokens in dev that are not in the vocabulary: {side.unknown_tokens:,} "
                f"of {side.dev_tokens:,} ({side.unknown_tokens / side.dev_tokens:.2%}), pairs "
                f"with one: {side.unknown_examples:,}; most frequent: {_list(side.unknown)}"
            )
    yield from _say(found.duplicates, "pairs that repeat an earlier pair exactly")
    for name, side in sides:
        yield from _say(side.control, f"{name}s with control or invisible characters")
        yield from _say(side.replacement, f"{name}s with U+FFFD, the mark of a bad conversion")
        yield from _say(side.edges, f"{name}s that begin or end with white space")
        if side.kind == "whitespace":
            yield from _say(side.double_spaces, f"{name}s with double spaces, read as one")
        yield from _say(side.decomposed, f"{name}s not in Unicode form NFC")
    if found.outliers:
        places = ", ".join(
            f"line {line} ({one} to {other})" for line, one, other in found.outliers[:SHOWN]
        )
        yield f"pairs whose lengths do not fit together: {len(found.outliers):,}: {places}"
    if found.copies.count < FEW_COPIES * found.pairs:
        yield from _say(found.copies, "targets that equal their source")


def _say(finding: IssueCount, words: str) -> Iterator[str]:
    if finding.count:
        yield f"{words}: {finding.count:,} (first: line {finding.line})"


def _counts(found: Check) -> list[str]:
    share = found.copies.count / max(1, found.pairs)
    rows = [
        ("train pairs", f"{found.pairs:,}"),
        ("train sources", f"{found.sources:,}, {found.several:,} with several targets"),
        ("dev pairs", f"{found.dev_pairs:,}"),
        ("dev sources", f"{found.dev_sources:,}, {found.overlap:,} also in train"),
        ("repeated pairs", f"{found.duplicates.count:,}"),
        ("target = source", f"{found.copies.count:,} ({share:.1%})"),
        ("odd lengths", f"{len(found.outliers):,}"),
        ("above 99th percentile", f"{found.over_99:,} pairs"),
    ]
    if found.limit is not None:
        rows.append((f"above {found.limit} tokens", f"{found.over_limit:,} pairs"))
    return table(rows, 23)


def _sides(found: Check) -> list[str]:
    columns = zip(NAMES, _rows(found.source), _rows(found.target), strict=True)
    rows = [("", "source", "target"), *columns]
    width = max(len(row[1]) for row in rows) + 2
    return [f"{name:<23}{left:<{width}}{right}".rstrip() for name, left, right in rows]


NAMES = (
    *("tokens", "vocabulary", "length: half up to", "90 % up to", "99 % up to", "longest"),
    *("characters", "scripts", "rare characters", "unknown in dev"),
    *("empty", "control characters", "U+FFFD", "white space at ends", "double spaces", "not NFC"),
)


def _rows(side: SideStats) -> list[str]:
    """The values of one side, in the order of NAMES."""
    scripts = [f"{script} {share:.1%}" for script, share in side.scripts.items()]
    findings = (side.empty, side.control, side.replacement, side.edges, side.double_spaces)
    return [
        *(side.kind, f"{side.vocab_size:,}"),
        *(f"{length:,}" for length in side.lengths.values()),
        *(f"{side.characters:,}", ", ".join(scripts[:3]) or "-"),
        f"{len(side.rare):,}" + (f": {_list(side.rare)}" if side.rare else ""),
        f"{side.unknown_tokens:,} of {side.dev_tokens:,}",
        *(f"{finding.count:,}" for finding in (*findings, side.decomposed)),
    ]


def _list(tokens: dict[str, int]) -> str:
    """Some tokens, with those that cannot be printed as code points."""
    shown = [
        token if token.isprintable() and token.strip() else f"U+{ord(token[0]):04X}"
        for token in list(tokens)[:SHOWN]
    ]
    return " ".join(shown) + (" ..." if len(tokens) > SHOWN else "")
