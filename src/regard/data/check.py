"""The check of the data before training: what is there, what is odd, what would be dropped."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from regard.data.read import Pair
from regard.data.side import Finding, Side, measure_side
from regard.data.vocabulary import Vocabulary

SHOWN = 5
FEW_COPIES = 0.05  # copies below this share look like untranslated lines, above like the task


@dataclass
class Check:
    """What was found, as plain data; `lines` and `short` put it in words."""

    pairs: int
    sources: int
    several: int  # sources with several different targets
    dev_pairs: int
    dev_sources: int
    overlap: int  # dev sources that are also in train
    duplicates: Finding  # pairs that repeat an earlier pair exactly
    source: Side
    target: Side
    outliers: list[tuple[int, int, int]]  # line, source length, target length; oddest first
    copies: Finding  # target equals source
    limit: int | None
    over_limit: int
    over_99: int  # pairs with a side longer than 99 in 100 of its kind
    warnings: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        """All of it, ready for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The full report as plain text, warnings first."""
        warnings = [f"! {warning}" for warning in self.warnings] or ["nothing odd was found"]
        return [*warnings, "", *_counts(self), "", *_sides(self)]

    def short(self) -> list[str]:
        """What matters during training: the sizes in three lines, and every warning."""
        counts = f"train {self.pairs:,} pairs ({self.sources:,} sources), dev {self.dev_pairs:,}"
        sides = [
            f"{name}: {side.kind}, {side.vocabulary:,} symbols in the vocabulary, "
            f"half of the texts up to {side.lengths[50]} long, 99 % up to {side.lengths[99]}, "
            f"longest {side.lengths[100]}"
            for name, side in (("source", self.source), ("target", self.target))
        ]
        return [counts, *sides, *(f"! {warning}" for warning in self.warnings)]


def check(
    train: list[Pair], dev: list[Pair], source: Vocabulary, target: Vocabulary, limit: int | None
) -> Check:
    """The figures of train and dev; `limit` is the longest side, in symbols, that may be used."""
    numbers = [pair.line for pair in train]
    sources, targets = [pair.source for pair in train], [pair.target for pair in train]
    source_lengths = [len(ids) for ids in source.encode_all(sources)]
    target_lengths = [len(ids) for ids in target.encode_all(targets)]
    left = measure_side(sources, numbers, source_lengths, [pair.source for pair in dev], source)
    right = measure_side(targets, numbers, target_lengths, [pair.target for pair in dev], target)
    lengths = list(zip(source_lengths, target_lengths, strict=True))

    distinct = dict.fromkeys((pair.source, pair.target) for pair in train)
    references = Counter(one for one, _ in distinct)
    dev_sources = {pair.source for pair in dev}
    result = Check(
        pairs=len(train),
        sources=len(references),
        several=sum(count > 1 for count in references.values()),
        dev_pairs=len(dev),
        dev_sources=len(dev_sources),
        overlap=len(dev_sources & references.keys()),
        duplicates=Finding(len(train) - len(distinct), _first_repeat(train)),
        source=left,
        target=right,
        outliers=_outliers(numbers, lengths),
        copies=_copies(train),
        limit=limit,
        over_limit=0 if limit is None else sum(max(pair) > limit for pair in lengths),
        over_99=sum(one > left.lengths[99] or other > right.lengths[99] for one, other in lengths),
    )
    result.warnings = list(_warnings(result))
    return result


def _first_repeat(pairs: list[Pair]) -> int | None:
    seen = set()
    for pair in pairs:
        if (pair.source, pair.target) in seen:
            return pair.line
        seen.add((pair.source, pair.target))
    return None


def _copies(pairs: list[Pair]) -> Finding:
    lines = [pair.line for pair in pairs if pair.source == pair.target and pair.source.strip()]
    return Finding(len(lines), lines[0] if lines else None)


def _outliers(numbers: list[int], lengths: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Pairs whose length ratio is far from the usual: at least threefold, and six deviations."""
    whole = [(at, one, other) for at, (one, other) in enumerate(lengths) if one and other]
    if len(whole) < SHOWN:
        return []
    # One is added so that 1 against 3 symbols counts less than 10 against 30.
    ratios = [math.log((other + 1) / (one + 1)) for _, one, other in whole]
    middle = statistics.median(ratios)
    deviation = 1.48 * statistics.median(abs(ratio - middle) for ratio in ratios)
    far = max(math.log(3), 6 * deviation)
    odd = [
        (-abs(ratio - middle), numbers[at], one, other)
        for ratio, (at, one, other) in zip(ratios, whole, strict=True)
        if abs(ratio - middle) > far
    ]
    return [(line, one, other) for _, line, one, other in sorted(odd)]


def _warnings(found: Check) -> Iterator[str]:
    """Everything that the user may want to mend, each with its count."""
    sides = (("source", found.source), ("target", found.target))
    for name, side in sides:
        yield from _say(side.empty, f"pairs with an empty {name}, which training leaves out")
    if found.over_limit:
        yield (
            f"pairs longer than {found.limit} symbols, which training leaves out: "
            f"{found.over_limit:,} ({found.over_limit / found.pairs:.1%})"
        )
    if found.overlap:
        yield f"dev sources that are in train as well: {found.overlap:,} of {found.dev_sources:,}"
    for name, side in sides:
        if side.unknown_symbols:
            yield (
                f"{name} symbols in dev that are not in the vocabulary: {side.unknown_symbols:,} "
                f"of {side.dev_symbols:,} ({side.unknown_symbols / side.dev_symbols:.2%}), pairs "
                f"with one: {side.unknown_examples:,}; most frequent: {_list(side.unknown)}"
            )
    yield from _say(found.duplicates, "pairs that repeat an earlier pair exactly")
    for name, side in sides:
        yield from _say(side.control, f"{name}s with control or invisible characters")
        yield from _say(side.replacement, f"{name}s with U+FFFD, the mark of a bad conversion")
        yield from _say(side.edges, f"{name}s that begin or end with white space")
        if side.kind == "space":
            yield from _say(side.double_spaces, f"{name}s with double spaces, read as one")
        yield from _say(side.decomposed, f"{name}s not in Unicode form NFC")
    if found.outliers:
        places = ", ".join(
            f"line {line} ({one} to {other})" for line, one, other in found.outliers[:SHOWN]
        )
        yield f"pairs whose lengths do not fit together: {len(found.outliers):,}: {places}"
    if found.copies.count < FEW_COPIES * found.pairs:
        yield from _say(found.copies, "targets that equal their source")


def _say(finding: Finding, words: str) -> Iterator[str]:
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
        rows.append((f"above {found.limit} symbols", f"{found.over_limit:,} pairs"))
    return [f"{name:<23}{value}" for name, value in rows]


def _sides(found: Check) -> list[str]:
    columns = zip(NAMES, _rows(found.source), _rows(found.target), strict=True)
    rows = [("", "source", "target"), *columns]
    width = max(len(row[1]) for row in rows) + 2
    return [f"{name:<23}{left:<{width}}{right}".rstrip() for name, left, right in rows]


NAMES = (
    *("symbols", "vocabulary", "length: half up to", "90 % up to", "99 % up to", "longest"),
    *("characters", "scripts", "rare characters", "unknown in dev"),
    *("empty", "control characters", "U+FFFD", "white space at ends", "double spaces", "not NFC"),
)


def _rows(side: Side) -> list[str]:
    """The values of one side, in the order of NAMES."""
    scripts = [f"{script} {share:.1%}" for script, share in side.scripts.items()]
    findings = (side.empty, side.control, side.replacement, side.edges, side.double_spaces)
    return [
        *(side.kind, f"{side.vocabulary:,}"),
        *(f"{length:,}" for length in side.lengths.values()),
        *(f"{side.characters:,}", ", ".join(scripts[:3]) or "-"),
        f"{len(side.rare):,}" + (f": {_list(side.rare)}" if side.rare else ""),
        f"{side.unknown_symbols:,} of {side.dev_symbols:,}",
        *(f"{finding.count:,}" for finding in (*findings, side.decomposed)),
    ]


def _list(symbols: dict[str, int]) -> str:
    """Some symbols, with those that cannot be printed as code points."""
    shown = [
        symbol if symbol.isprintable() and symbol.strip() else f"U+{ord(symbol[0]):04X}"
        for symbol in list(symbols)[:SHOWN]
    ]
    return " ".join(shown) + (" ..." if len(symbols) > SHOWN else "")
