"""Pairs of large files, which stay on disk and are read block by block.

A block is about 128 kB of complete lines (`textfile.BLOCK`). A row is the 0-based index of a pair
in the file. `scan.Scan` checks the files and writes the index of blocks.
"""

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

BLOCK_PAIRS = 1 << 16  # pairs per block if the pairs are a list


class LargePairs(Sequence[Pair]):
    """The pairs of one or two text files, with the index that `scan.Scan` wrote to `folder`."""

    def __init__(self, folder: Path, metadata: dict[str, Any], paths: Sequence[str]) -> None:
        self.folder, self.paths = folder, list(paths)
        self.key = folder.name
        self.layout = load_layout(metadata["layout"])
        self.block_index = np.load(folder / "index.npy")
        self.total: int = metadata["rows"]

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
        """Return a 64-bit hash of each source: (N,)."""
        return np.load(self.folder / "hashes.npy", mmap_mode="r")

    def empty_sides(self) -> np.ndarray:
        """Return the rows of pairs with an empty source or target."""
        return np.load(self.folder / "empty_sides.npy")

    def blocks(self, first: int = 0, last: int | None = None) -> Iterator[ParsedBlock]:
        """Yield the pairs of the blocks `first` to `last` (exclusive; None: to the end)."""
        return (
            self.layout.parse(*block)
            for block in self._read(range(len(self.block_index))[first:last])
        )

    def _read(self, numbers: Iterable[int]) -> Iterator[tuple[list[str], int]]:
        """Yield the text of each file and the first line number of the blocks `numbers`."""
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(open(path, "rb")) for path in self.paths]
            for number in numbers:
                *offsets, line, _ = self.block_index[number].tolist()
                texts = []
                for file, offset, count in zip(files, offsets[::2], offsets[1::2], strict=True):
                    file.seek(offset)
                    texts.append(file.read(count).decode())
                yield texts, line

    def subset(self, rows: np.ndarray) -> Iterator[ParsedBlock]:
        """Yield the pairs of these ascending rows, block by block; skip blocks without them."""
        starts = np.append(self.block_index[:, -1], self.total)
        bounds = np.searchsorted(
            rows, starts.astype(rows.dtype)
        )  # with the same dtype, searchsorted does not copy `rows`
        needed = np.flatnonzero(bounds[1:] > bounds[:-1]).tolist()
        for number, (texts, line) in zip(needed, self._read(needed), strict=True):
            some = rows[bounds[number] : bounds[number + 1]]
            indices = (some - starts[number]).tolist()
            yield self._subset_block(texts, line, indices, starts[number + 1] - starts[number])

    def _subset_block(
        self, texts: list[str], line: int, indices: list[int], count: int
    ) -> ParsedBlock:
        """Return the pairs with these indices among the `count` pairs of a block."""
        lines = [text.removesuffix("\n").split("\n") for text in texts]
        plain = len(lines[0]) == count and self.layout.pair_per_line
        if plain and len(indices) < count:  # one pair per line: other lines are not parsed
            texts = ["\n".join([*(side[at] for at in indices), ""]) for side in lines]
            block = self.layout.parse(texts, line)
            block.lines = [line + at for at in indices]
            return block
        block = self.layout.parse(texts, line)
        if len(indices) == count:
            return block
        sources, targets = ([side[at] for at in indices] for side in (block.sources, block.targets))
        return ParsedBlock(sources, targets, [block.lines[at] for at in indices])


class PairSubset(Sequence[Pair]):
    """A subset of the pairs `base`. rows: ascending indices into `base`."""

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
        """A hash that identifies the file and the rows of the subset."""
        large = large_base(self)
        assert large is not None
        return make_key(large.key, self.rows.tobytes())


def base_and_rows(pairs: Sequence[Pair]) -> tuple[Sequence[Pair], np.ndarray]:
    """Return `base` and `rows` of a subset; the pairs themselves and all rows otherwise."""
    rows = subset_rows(pairs)
    if rows is not None:
        return pairs.base, rows  # type: ignore[attr-defined]
    return pairs, np.arange(len(pairs), dtype=np.uint32 if len(pairs) < 1 << 32 else np.int64)


def subset_rows(pairs: Sequence[Pair]) -> np.ndarray | None:
    """Return the rows of a `PairSubset`; None for other pairs."""
    return pairs.rows if isinstance(pairs, PairSubset) else None


def large_base(pairs: Sequence[Pair]) -> LargePairs | None:
    """Return the LargePairs that `pairs` is, or is a subset of; None if there is none."""
    base = pairs.base if isinstance(pairs, PairSubset) else pairs
    return base if isinstance(base, LargePairs) else None


def blocks(pairs: Sequence[Pair]) -> Iterator[ParsedBlock]:
    """Yield the pairs block by block, as lists of sources, targets and lines."""
    large, rows = large_base(pairs), subset_rows(pairs)
    if large is not None:
        yield from large.blocks() if rows is None else large.subset(rows)
    else:
        every = iter(pairs)
        while some := list(itertools.islice(every, BLOCK_PAIRS)):
            yield ParsedBlock(
                [p.source for p in some], [p.target for p in some], [p.line for p in some]
            )


def select_pairs(pairs: Sequence[Pair], mask: np.ndarray) -> Sequence[Pair]:
    """Return the pairs for which the mask (N,) is true; LargePairs become a PairSubset."""
    if mask.all() and pairs is not large_base(pairs):
        return pairs
    base, rows = base_and_rows(pairs)
    return PairSubset(base, rows[mask])


def nonempty_pairs(pairs: Sequence[Pair]) -> Sequence[Pair]:
    """Return the pairs whose source and target are not empty."""
    large = large_base(pairs)
    if large is None:
        return select_pairs(pairs, np.array([not pair.is_empty() for pair in pairs], bool))
    return select_pairs(pairs, np.isin(base_and_rows(pairs)[1], large.empty_sides(), invert=True))
