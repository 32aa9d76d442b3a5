"""Rows: sequences of different lengths, stored without padding until a batch needs them.

N is the number of rows, one per example. The arrays are in memory or memory-mapped.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from regard.data.tensors.padded import Padded, pad_flat

CHUNK_ROWS = 1 << 16  # rows per chunk


class Rows(ABC):
    """Sequences of many examples: their sources or their targets."""

    lengths: np.ndarray  # (N,)
    uniform = False  # whether only rows of equal length can be padded together

    @abstractmethod
    def pad(self, rows: np.ndarray) -> Padded:
        """Return the rows with these indices as one padded tensor."""

    @abstractmethod
    def row(self, index: int) -> np.ndarray:
        """Return the row with this index, without padding: (length, ...)."""

    @abstractmethod
    def take(self, rows: np.ndarray) -> "Rows":
        """Return only the rows with these indices."""

    @abstractmethod
    def update(self, digest: "hashlib._Hash") -> None:
        """Add all values in order to a hash."""

    def __len__(self) -> int:
        return len(self.lengths)

    def all(self) -> Padded:
        """Return all rows as one padded tensor."""
        return self.pad(np.arange(len(self)))


@dataclass(frozen=True)
class Ragged(Rows):
    """Concatenated rows of tokens or vectors.

    flat: (total, ...), token ids or float vectors. Row i is flat[starts[i] : starts[i] +
    lengths[i]], with starts and lengths (N,).
    """

    flat: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    def pad(self, rows: np.ndarray) -> Padded:
        return pad_flat(self.flat, self.starts[rows], self.lengths[rows])

    def take(self, rows: np.ndarray) -> "Ragged":
        """Return only the rows with these indices, without copying `flat`."""
        return Ragged(self.flat, self.starts[rows], self.lengths[rows])

    def row(self, index: int) -> np.ndarray:
        start = int(self.starts[index])
        return self.flat[start : start + int(self.lengths[index])]

    def chunks(self) -> Iterator[np.ndarray]:
        """Yield the concatenated values of CHUNK_ROWS rows at a time, in order."""
        for start in range(0, len(self.lengths), CHUNK_ROWS):
            lengths = self.lengths[start : start + CHUNK_ROWS].astype(np.int64)
            before = np.cumsum(lengths) - lengths
            shift = self.starts[start : start + CHUNK_ROWS].astype(np.int64) - before
            yield self.flat[np.repeat(shift, lengths) + np.arange(lengths.sum())]

    def update(self, digest: "hashlib._Hash") -> None:
        integer = np.issubdtype(self.flat.dtype, np.integer)
        for chunk in self.chunks():  # the hash must not depend on the dtype or on `starts`
            digest.update(
                np.ascontiguousarray(chunk.astype(np.int32) if integer else chunk).tobytes()
            )
        for start in range(0, len(self.lengths), CHUNK_ROWS):
            digest.update(self.lengths[start : start + CHUNK_ROWS].astype(np.int64).tobytes())

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], *end: int) -> "Ragged":
        """Return rows of token ids, each followed by the ids `end`, if any."""
        lengths = np.fromiter((len(row) + len(end) for row in rows), np.int64, len(rows))
        flat = np.fromiter(
            (token for row in rows for token in (*row, *end)), np.int32, int(lengths.sum())
        )
        return cls.from_flat(flat, lengths)

    @classmethod
    def from_flat(cls, flat: np.ndarray, lengths: np.ndarray) -> "Ragged":
        """Return rows of these lengths, whose values are concatenated in `flat`."""
        return cls(flat, np.cumsum(lengths) - lengths, lengths)

    @classmethod
    def from_arrays(cls, rows: Sequence[np.ndarray]) -> "Ragged":
        """Return rows of float32 vectors from arrays (length, F)."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        flat = np.concatenate(rows) if rows else np.zeros((0, 1))
        return cls.from_flat(np.ascontiguousarray(flat, np.float32), lengths)
