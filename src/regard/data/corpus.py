"""Examples as numbers: all symbols of a side in one flat array, with the place of each example."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.data.batch import Batch, pad_flat


@dataclass(frozen=True)
class Side:
    """Rows of symbols, one after the other. flat: all symbols; starts, lengths: (N,)."""

    flat: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], end: int) -> "Side":
        """The side with these rows, each closed with the symbol `end`."""
        lengths = np.fromiter((len(row) + 1 for row in rows), np.int64, len(rows))
        flat = np.fromiter(
            (symbol for row in rows for symbol in (*row, end)), np.int32, int(lengths.sum())
        )
        return cls(flat, np.cumsum(lengths) - lengths, lengths)


@dataclass(frozen=True)
class Corpus:
    """Source and target sides of the same examples."""

    source: Side
    target: Side

    def __len__(self) -> int:
        return len(self.source.lengths)

    @property
    def lengths(self) -> np.ndarray:
        """(N, 2): symbols of source and target, closing symbols included."""
        return np.stack([self.source.lengths, self.target.lengths], 1)

    def batch(self, rows: np.ndarray) -> Batch:
        """The examples with these numbers as a batch."""
        source, target = (
            pad_flat(side.flat, side.starts[rows], side.lengths[rows])
            for side in (self.source, self.target)
        )
        return Batch(source, target)
