"""Read pairs from TSV, CSV, JSONL or two aligned files, plain or gzip."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.core.errors import UserError
from regard.core.formatting import count_noun
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
    """One source and one target. line: their first line in the file, 1-based.

    Source and target are each a text, a tuple of words, tags or labels, or a tuple of numbers.
    """

    source: Any
    target: Any
    line: int

    def is_empty(self) -> bool:
        """Return whether the source or the target is empty or has only whitespace."""
        return not (_has_content(self.source) and _has_content(self.target))


def _has_content(side: Any) -> bool:
    return bool(side.strip()) if isinstance(side, str) else len(side) > 0


@dataclass(frozen=True, slots=True)
class Example:
    """One source with all its distinct targets (references), in order of occurrence."""

    source: Any
    references: tuple[Any, ...]


@dataclass
class Pairs:
    """The pairs of a file. notes: what was recognized, for the user."""

    name: str
    path: str
    pairs: Sequence[Pair]
    notes: list[str] = field(default_factory=list)


def read_pairs(
    path: str, source_column: str | None = None, target_column: str | None = None
) -> Pairs:
    """Return the pairs of a TSV, CSV or JSONL file, or of stdin (`-`).

    A column is a 1-based index, a header name or JSON key, or a comma-separated list of them.
    """
    text, notes = read_text(path)
    kind = recognize(path, text, notes)
    return _read_whole([path], [text], [notes], kind, (source_column, target_column))


def read_aligned(source: str, target: str) -> Pairs:
    """Return the pairs of two aligned files with the same number of lines."""
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
    """Return the pairs of one or two files that are in memory. notes: notes per file."""
    shown = [show_path(path) for path in paths]
    ends = [
        LineEnds(text.count("\n") + (text[-1:] != "\n"), text.count("\n"), text.count("\r"))
        for text in texts
    ]
    reader = PairReader(shown, kind, names, ends, lambda: [(1, list(texts))])
    pairs = [pair for block in reader.blocks() for pair in pairs_of(block)]
    file_notes = note_files(shown, notes, reader.returns)
    return Pairs(stem(paths[0]), reader.path, pairs, file_notes + reader.notes)


def pairs_of(block: ParsedBlock) -> Iterator[Pair]:
    """Yield the pairs of a block."""
    return map(Pair, block.sources, block.targets, block.lines)


def split_dev(
    pairs: list[Pair], fraction: float = 0.1, max_sources: int = 1_000
) -> tuple[list[Pair], list[Pair]]:
    """Split pairs into a training set and a dev set by a hash of the source.

    All pairs of a source go to the same set. The dev set gets `fraction` of the sources, at least
    one and at most `max_sources`. The split does not depend on the order of lines.
    """
    sources = {pair.source for pair in pairs}
    count = dev_size(len(pairs), len(sources), fraction, max_sources)
    dev = set(sorted(sources, key=hash_source)[:count])
    return (
        [pair for pair in pairs if pair.source not in dev],
        [pair for pair in pairs if pair.source in dev],
    )


def dev_size(pairs: int, sources: int, fraction: float = 0.1, max_sources: int = 1_000) -> int:
    """Return how many of the distinct sources go to the dev set."""
    if sources < 2:
        raise UserError(
            f"{count_noun(pairs, 'pair')} with {sources} distinct source: at least 2 sources are "
            "needed to hold out a dev set",
            help="pass more data, or --dev FILE to train",
        )
    return max(1, min(max_sources, round(fraction * sources), sources - 1))


def hash_source(source: Any) -> bytes:
    """Return a 64-bit hash of a source that is the same on every machine."""
    source = source if isinstance(source, str) else repr(source)
    return hashlib.blake2b(source.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def group(pairs: Iterable[Pair]) -> list[Example]:
    """Return one example per source, in order of first occurrence, with its distinct targets."""
    targets: dict[Any, dict[str, None]] = {}
    for pair in pairs:
        targets.setdefault(pair.source, {})[pair.target] = None
    return [Example(source, tuple(references)) for source, references in targets.items()]
