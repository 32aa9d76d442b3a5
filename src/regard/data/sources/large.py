"""Pairs that stay in their file: read block by block, never all at once."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

from regard.core.cache import make_key
from regard.data.reading.pair_format import ParsedBlock
from regard.data.reading.read import Pair, pairs_of
from regard.data.sources.scan import load_layout

AT_ONCE = 1 << 16  # pairs of a list that are looked at together


class LargePairs(Sequence[Pair]):
    """The pairs of one or two text files, by the index that a scan left in a folder."""

    def __init__(self, folder: Path, facts: dict[str, Any], paths: Sequence[str]) -> None:
        self.folder, self.paths = folder, list(paths)
        self.key = folder.name
        self.layout = load_layout(facts["layout"])
        self.block_index = np.load(folder / "index.npy")
        self.total: int = facts["rows"]

    def __len__(self) -> int:
        return self.total

    @overload
    def __getitem__(self, at: int) -> Pair: ...
    @overload
    def __getitem__(self, at: slice) -> PairSubset: ...
    def __getitem__(self, at: int | slice) -> Pair | PairSubset:
        if isinstance(at, slice):
            return PairSubset(self, np.array(range(self.total)[at], np.int64))
        return next(iter(PairSubset(self, np.array([range(self.total)[at]]))))

    def __iter__(self) -> Iterator[Pair]:
        return itertools.chain.from_iterable(map(pairs_of, self.blocks()))

    def hashes(self) -> np.ndarray:
        """A hash of each source."""
        return np.load(self.folder / "hashes.npy", mmap_mode="r")

    def empty_sides(self) -> np.ndarray:
        """The rows with an empty side."""
        return np.load(self.folder / "empty_sides.npy")

    def blocks(self, first: int = 0, last: int | None = None) -> Iterator[ParsedBlock]:
        """The pairs of these blocks, block by block."""
        return (
            self.layout.parse(*block)
            for block in self._read(range(len(self.block_index))[first:last])
        )

    def _read(self, numbers: Iterable[int]) -> Iterator[tuple[list[str], int]]:
        """The text in each file, and the first line, of the blocks with these numbers."""
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(open(path, "rb")) for path in self.paths]
            for number in numbers:
                *places, line, _ = self.block_index[number].tolist()
                texts = []
                for file, place, count in zip(files, places[::2], places[1::2], strict=True):
                    file.seek(place)
                    texts.append(file.read(count).decode())
                yield texts, line

    def subset(self, rows: np.ndarray) -> Iterator[ParsedBlock]:
        """The pairs of these rows, block by block; blocks without any are not read."""
        starts = np.append(self.block_index[:, -1], self.total)
        bounds = np.searchsorted(rows, starts.astype(rows.dtype))  # one type: no copy of the rows
        wanted = np.flatnonzero(bounds[1:] > bounds[:-1]).tolist()
        for number, (texts, line) in zip(wanted, self._read(wanted), strict=True):
            some = rows[bounds[number] : bounds[number + 1]]
            places = (some - starts[number]).tolist()
            yield self._pick(texts, line, places, starts[number + 1] - starts[number])

    def _pick(self, texts: list[str], line: int, places: list[int], count: int) -> ParsedBlock:
        """The pairs at these places among the `count` pairs of a block."""
        lines = [text.removesuffix("\n").split("\n") for text in texts]
        plain = len(lines[0]) == count and self.layout.pair_per_line
        if plain and len(places) < count:  # a pair a line: the others need not be looked at
            texts = ["\n".join([*(side[at] for at in places), ""]) for side in lines]
            block = self.layout.parse(texts, line)
            block.lines = [line + at for at in places]
            return block
        block = self.layout.parse(texts, line)
        if len(places) == count:
            return block
        sources, targets = ([side[at] for at in places] for side in (block.sources, block.targets))
        return ParsedBlock(sources, targets, [block.lines[at] for at in places])


class PairSubset(Sequence[Pair]):
    """Some pairs of others. rows: their numbers, rising."""

    def __init__(self, base: Sequence[Pair], rows: np.ndarray) -> None:
        self.base = base
        self.rows = rows.astype(np.uint32, copy=False) if len(base) < 1 << 32 else rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> Pair: ...
    @overload
    def __getitem__(self, at: slice) -> PairSubset: ...
    def __getitem__(self, at: int | slice) -> Pair | PairSubset:
        if isinstance(at, slice):
            return PairSubset(self.base, self.rows[at])
        return self.base[int(self.rows[at])]

    def __iter__(self) -> Iterator[Pair]:
        if large_base(self) is not None:
            return itertools.chain.from_iterable(map(pairs_of, blocks(self)))
        return (self.base[row] for row in self.rows.tolist())

    @functools.cached_property
    def key(self) -> str:
        """A name for which pairs these are."""
        large = large_base(self)
        assert large is not None
        return make_key(large.key, self.rows.tobytes())


def base_and_rows(pairs: Sequence[Pair]) -> tuple[Sequence[Pair], np.ndarray]:
    """The pairs that these are a part of, and which ones; all of them where they are no part."""
    rows = subset_rows(pairs)
    if rows is not None:
        return pairs.base, rows  # type: ignore[attr-defined]
    return pairs, np.arange(len(pairs), dtype=np.uint32 if len(pairs) < 1 << 32 else np.int64)


def subset_rows(pairs: Sequence[Pair]) -> np.ndarray | None:
    """Which pairs of others these are; None where they are no part."""
    return pairs.rows if isinstance(pairs, PairSubset) else None


def large_base(pairs: Sequence[Pair]) -> LargePairs | None:
    """The pairs in a file that these are, or are a part of; None for pairs in memory."""
    base = pairs.base if isinstance(pairs, PairSubset) else pairs
    return base if isinstance(base, LargePairs) else None


def blocks(pairs: Sequence[Pair]) -> Iterator[ParsedBlock]:
    """The pairs in portions, as columns."""
    large, rows = large_base(pairs), subset_rows(pairs)
    if large is not None:
        yield from large.blocks() if rows is None else large.subset(rows)
    else:
        every = iter(pairs)
        while some := list(itertools.islice(every, AT_ONCE)):
            yield ParsedBlock(
                [p.source for p in some], [p.target for p in some], [p.line for p in some]
            )


def select_pairs(pairs: Sequence[Pair], wanted: np.ndarray) -> Sequence[Pair]:
    """The pairs where a mask is true: a part of them, or they themselves where it is all."""
    if wanted.all() and pairs is not large_base(pairs):
        return pairs
    base, rows = base_and_rows(pairs)
    return PairSubset(base, rows[wanted])


def nonempty_pairs(pairs: Sequence[Pair]) -> Sequence[Pair]:
    """The pairs without an empty side."""
    large = large_base(pairs)
    if large is None:
        return select_pairs(pairs, np.array([not pair.is_empty() for pair in pairs], bool))
    return select_pairs(pairs, np.isin(base_and_rows(pairs)[1], large.empty_sides(), invert=True))
