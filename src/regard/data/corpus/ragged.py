"""Rows of different lengths, as they lie in memory or in a file until a batch needs them."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from regard.data.tensors.padded import Padded, pad_flat

AT_ONCE = 1 << 16  # rows looked at together


class Rows(ABC):
    """Sources or targets of many examples."""

    lengths: np.ndarray  # (N,)
    uniform = False  # whether only rows of equal length can be padded together

    @abstractmethod
    def pad(self, rows: np.ndarray) -> Padded:
        """These rows as one tensor."""

    @abstractmethod
    def row(self, number: int) -> np.ndarray:
        """The numbers of one row: (length, ...)."""

    @abstractmethod
    def take(self, rows: np.ndarray) -> "Rows":
        """These rows only."""

    @abstractmethod
    def update(self, mark: "hashlib._Hash") -> None:
        """Adds all numbers to a fingerprint, in their order."""

    def __len__(self) -> int:
        return len(self.lengths)

    def all(self) -> Padded:
        """Every row, in one tensor."""
        return self.pad(np.arange(len(self)))


@dataclass(frozen=True)
class Ragged(Rows):
    """Rows of tokens or of vectors, one after the other. flat: (total, ...), whole numbers or
    floats; starts, lengths: (N,)."""

    flat: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    def pad(self, rows: np.ndarray) -> Padded:
        return pad_flat(self.flat, self.starts[rows], self.lengths[rows])

    def take(self, rows: np.ndarray) -> "Ragged":
        """These rows only; all tokens stay where they are."""
        return Ragged(self.flat, self.starts[rows], self.lengths[rows])

    def row(self, number: int) -> np.ndarray:
        start = int(self.starts[number])
        return self.flat[start : start + int(self.lengths[number])]

    def parts(self) -> Iterator[np.ndarray]:
        """The tokens of all rows in order, in portions."""
        for start in range(0, len(self.lengths), AT_ONCE):
            lengths = self.lengths[start : start + AT_ONCE].astype(np.int64)
            before = np.cumsum(lengths) - lengths
            shift = self.starts[start : start + AT_ONCE].astype(np.int64) - before
            yield self.flat[np.repeat(shift, lengths) + np.arange(lengths.sum())]

    def update(self, mark: "hashlib._Hash") -> None:
        whole = np.issubdtype(self.flat.dtype, np.integer)
        for part in self.parts():  # the same for any width of numbers, and for parts of a file
            mark.update(np.ascontiguousarray(part.astype(np.int32) if whole else part).tobytes())
        for start in range(0, len(self.lengths), AT_ONCE):
            mark.update(self.lengths[start : start + AT_ONCE].astype(np.int64).tobytes())

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], *end: int) -> "Ragged":
        """Rows of tokens, each closed with the token `end` where one is given."""
        lengths = np.fromiter((len(row) + len(end) for row in rows), np.int64, len(rows))
        flat = np.fromiter(
            (token for row in rows for token in (*row, *end)), np.int32, int(lengths.sum())
        )
        return cls.flat_of(flat, lengths)

    @classmethod
    def flat_of(cls, flat: np.ndarray, lengths: np.ndarray) -> "Ragged":
        """Rows of these lengths that lie one after the other."""
        return cls(flat, np.cumsum(lengths) - lengths, lengths)

    @classmethod
    def arrays(cls, rows: Sequence[np.ndarray]) -> "Ragged":
        """Rows of vectors, each (length, F), as float32."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        flat = np.concatenate(rows) if rows else np.zeros((0, 1))
        return cls.flat_of(np.ascontiguousarray(flat, np.float32), lengths)
