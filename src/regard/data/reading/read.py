"""Pairs from files: TSV, CSV, JSONL or two aligned files, each also gzip; errors carry the line."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.core.errors import UserError
from regard.data.reading.lines import (
    check_line_ends,
    note_files,
    read_lines,
    read_text,
    show_path,
    stem,
)
from regard.data.reading.pair_format import AlignedPairs, Names, PairFormat, ParsedBlock
from regard.data.reading.pair_reader import LineEnds, PairReader, recognize

__all__ = [
    "Example",
    "Pair",
    "Pairs",
    "group",
    "read_aligned",
    "read_lines",
    "read_pairs",
    "split_dev",
]


@dataclass(frozen=True, slots=True)
class Pair:
    """One source and one target, and the line of the file they began in, from 1.

    A side is a text, the tuple of its words or tags, or a tuple of numbers.
    """

    source: Any
    target: Any
    line: int

    def empty(self) -> bool:
        """Whether a side holds nothing, or nothing but white space."""
        return not (_filled(self.source) and _filled(self.target))


def _filled(side: Any) -> bool:
    """Whether there is anything in a side."""
    return bool(side.strip()) if isinstance(side, str) else len(side) > 0


@dataclass(frozen=True, slots=True)
class Example:
    """One source with all its targets, in order, without repeats."""

    source: Any
    references: tuple[Any, ...]


@dataclass
class Pairs:
    """What a file held: its pairs, and notes on what was recognized, to be shown to the user."""

    name: str
    path: str
    pairs: Sequence[Pair]
    notes: list[str] = field(default_factory=list)


def read_pairs(
    path: str, source_column: str | None = None, target_column: str | None = None
) -> Pairs:
    """The pairs of a TSV, CSV or JSONL file, or of standard input (`-`).

    A column is a number from 1, a header name or JSON key, or a comma list joined by a space.
    """
    text, notes = read_text(path)
    kind = recognize(path, text, notes)
    return _read_whole([path], [text], [notes], kind, (source_column, target_column))


def read_aligned(source: str, target: str) -> Pairs:
    """The pairs of two files with the same number of lines, each line its own side."""
    texts, notes = [], []
    for path in (source, target):
        text, found = read_text(path)
        check_line_ends(show_path(path), text.count("\n"), text.count("\r"))
        texts.append(text)
        notes.append(found)
    return _read_whole([source, target], texts, notes, AlignedPairs, (None, None))


def _read_whole(
    paths: Sequence[str],
    texts: Sequence[str],
    notes: Sequence[list[str]],
    kind: type[PairFormat],
    names: Names,
) -> Pairs:
    """The pairs of texts that are a single block. notes: on each file."""
    shown = [show_path(path) for path in paths]
    ends = [
        LineEnds(text.count("\n") + (text[-1:] != "\n"), text.count("\n"), text.count("\r"))
        for text in texts
    ]
    reader = PairReader(shown, kind, names, ends, lambda: [(1, list(texts))])
    pairs = [pair for block in reader.blocks() for pair in pairs_of(block)]
    said = note_files(shown, notes, reader.returns)
    return Pairs(stem(paths[0]), reader.path, pairs, said + reader.notes)


def pairs_of(block: ParsedBlock) -> Iterator[Pair]:
    """The pairs of a block."""
    return map(Pair, block.sources, block.targets, block.lines)


def split_dev(
    pairs: list[Pair], share: float = 0.1, most: int = 1_000
) -> tuple[list[Pair], list[Pair]]:
    """Train and dev parts. All pairs of a source stay on one side, decided by a hash of the source.

    Dev gets `share` of the sources, at most `most`, at least one; the order of lines is no matter.
    """
    sources = {pair.source for pair in pairs}
    count = dev_size(len(pairs), len(sources), share, most)
    dev = set(sorted(sources, key=hash_source)[:count])
    return (
        [pair for pair in pairs if pair.source not in dev],
        [pair for pair in pairs if pair.source in dev],
    )


def dev_size(pairs: int, sources: int, share: float = 0.1, most: int = 1_000) -> int:
    """How many of the different sources go to the dev part."""
    if sources < 2:
        raise UserError(
            f"{pairs} pair{'s' * (pairs != 1)} with {sources} distinct source: at "
            "least 2 sources are needed to set a dev part aside; give more data, or in training "
            "--dev FILE"
        )
    return max(1, min(most, round(share * sources), sources - 1))


def hash_source(source: Any) -> bytes:
    """A number for a source that is the same on every machine."""
    source = source if isinstance(source, str) else repr(source)
    return hashlib.blake2b(source.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def group(pairs: Iterable[Pair]) -> list[Example]:
    """One example a source, in order of first occurrence, its targets in order without repeats."""
    targets: dict[Any, dict[str, None]] = {}
    for pair in pairs:
        targets.setdefault(pair.source, {})[pair.target] = None
    return [Example(source, tuple(references)) for source, references in targets.items()]
