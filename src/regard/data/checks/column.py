"""The texts of one or both sides of pairs, in memory or in a large file.

A side is "source" or "target".
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from regard.core.progress import ProgressBar
from regard.data.reading.read import Pair
from regard.data.sources.large import PairSubset, blocks, large_base
from regard.data.tokenizers.amount import Amount


def side_texts(pairs: Sequence[Pair], *sides: str) -> Sequence[str]:
    """Return all texts of the first side, then of the next; in large files they stay on disk."""
    if isinstance(pairs, PairSubset) and large_base(pairs) is not None:
        return Column(pairs, sides)
    return [getattr(pair, side) for side in sides for pair in pairs]


class Column(Sequence[str]):
    """The texts of these sides of pairs in a large file, read when needed."""

    def __init__(self, pairs: PairSubset, sides: Sequence[str]) -> None:
        self.pairs, self.sides = pairs, sides

    def __len__(self) -> int:
        return len(self.pairs) * len(self.sides)

    def __iter__(self) -> Iterator[str]:
        for side in self.sides:
            yield from _texts(self.pairs, side)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, int):
            return self[slice(at, at + 1)][0]
        indices = np.array(range(len(self))[at], np.int64)
        count = len(self.pairs)
        found: list[str] = []
        for number, side in enumerate(self.sides):
            rows = indices[(indices >= number * count) & (indices < (number + 1) * count)]
            part = PairSubset(self.pairs.base, self.pairs.rows[rows - number * count])
            found += _texts(part, side)
        return found

    @functools.cached_property
    def amount(self) -> Amount:
        """The number of words and of each character in all texts."""
        known = amounts(self.pairs)
        return functools.reduce(Amount.__add__, [known[side] for side in self.sides])


def amounts(pairs: PairSubset) -> dict[str, Amount]:
    """Return the amount of text per side; cache it in the object `pairs`."""
    known: dict[str, Amount] | None = pairs.__dict__.get("amounts")
    if known is None:
        known = {"source": Amount(), "target": Amount()}
        with ProgressBar("counting words and characters", len(pairs)) as bar:
            for block in blocks(pairs):
                known["source"].add(block.sources)
                known["target"].add(block.targets)
                bar.advance(len(block.sources))
        pairs.__dict__["amounts"] = known
    return known


def _texts(pairs: PairSubset, side: str) -> Iterator[str]:
    for block in blocks(pairs):
        yield from getattr(block, f"{side}s")
