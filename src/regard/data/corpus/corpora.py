"""Examples as numbers: all symbols of a side in one flat array, with the place of each example."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch

from regard.data.corpus.order import batches
from regard.data.tensors.padded import Batch, Padded, pad_flat

AT_ONCE = 1 << 16  # rows looked at together


@dataclass(frozen=True)
class TokenRows:
    """Rows of symbols, one after the other. flat: all symbols; starts, lengths: (N,)."""

    flat: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    def take(self, rows: np.ndarray) -> "TokenRows":
        """The side with these rows only; all symbols stay where they are."""
        return TokenRows(self.flat, self.starts[rows], self.lengths[rows])

    def parts(self) -> Iterator[np.ndarray]:
        """The symbols of all rows in order, in portions."""
        for start in range(0, len(self.lengths), AT_ONCE):
            lengths = self.lengths[start : start + AT_ONCE].astype(np.int64)
            before = np.cumsum(lengths) - lengths
            shift = self.starts[start : start + AT_ONCE].astype(np.int64) - before
            yield self.flat[np.repeat(shift, lengths) + np.arange(lengths.sum())]

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], *end: int) -> "TokenRows":
        """The side with these rows, each closed with the symbol `end` where one is given."""
        lengths = np.fromiter((len(row) + len(end) for row in rows), np.int64, len(rows))
        flat = np.fromiter(
            (symbol for row in rows for symbol in (*row, *end)), np.int32, int(lengths.sum())
        )
        return cls.flat_of(flat, lengths)

    @classmethod
    def flat_of(cls, flat: np.ndarray, lengths: np.ndarray) -> "TokenRows":
        """The side whose rows of these lengths lie one after the other."""
        return cls(flat, np.cumsum(lengths) - lengths, lengths)


class Corpus(ABC):
    """Examples that can be put in order and made into batches.

    sequential: whether each batch goes on where the one before it ended.
    """

    sequential: bool = False

    @property
    @abstractmethod
    def lengths(self) -> np.ndarray:
        """(N, sides): symbols of each side of each example."""

    @abstractmethod
    def batch(self, rows: np.ndarray) -> Batch:
        """The examples with these numbers as a batch."""

    def __len__(self) -> int:
        return len(self.lengths)

    def longest(self) -> list[int]:
        """The most symbols of each side that a model reads at once."""
        return self.lengths.max(0).tolist() if len(self) else []

    def order(self, tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
        """The batches of an epoch, as rows: a pure function, so that a run can be resumed."""
        return batches(self.lengths, tokens, seed, epoch)

    def passes(self, batch_size: int) -> Iterator[Batch]:
        """Every example once, by length, for evaluation."""
        order = self.lengths.max(1).argsort(kind="stable")
        for start in range(0, len(order), batch_size):
            yield self.batch(order[start : start + batch_size])

    def digest(self) -> str:
        """A fingerprint of all numbers, in their order."""
        mark = hashlib.sha256()
        for part in fields(self):  # type: ignore[arg-type]
            _update(mark, getattr(self, part.name))
        return mark.hexdigest()[:32]


@dataclass(frozen=True)
class PairCorpus(Corpus):
    """Source and target sequences of the same examples."""

    source: TokenRows
    target: TokenRows

    @property
    def lengths(self) -> np.ndarray:
        """(N, 2): symbols of source and target, closing symbols included."""
        return np.stack([self.source.lengths, self.target.lengths], 1)

    def __len__(self) -> int:
        return len(self.source.lengths)

    def take(self, rows: np.ndarray) -> "PairCorpus":
        """The corpus of these rows."""
        return PairCorpus(self.source.take(rows), self.target.take(rows))

    def batch(self, rows: np.ndarray) -> Batch:
        """The examples with these numbers as a batch."""
        source, target = (
            pad_flat(side.flat, side.starts[rows], side.lengths[rows])
            for side in (self.source, self.target)
        )
        return Batch(source, target)


@dataclass(frozen=True)
class LabelCorpus(Corpus):
    """Sequences with one answer each. labels: (N,) classes or (N, C) numbers; weight: (N,)."""

    source: TokenRows
    labels: np.ndarray
    weight: np.ndarray | None = None

    @property
    def lengths(self) -> np.ndarray:
        """(N, 1): symbols of the source."""
        return self.source.lengths[:, None]

    def batch(self, rows: np.ndarray) -> Batch:
        """The examples with these numbers as a batch."""
        side = self.source
        source = pad_flat(side.flat, side.starts[rows], side.lengths[rows])
        return Batch(source, labels=_tensor(self.labels, rows), weight=_tensor(self.weight, rows))


@dataclass(frozen=True)
class VectorCorpus(Corpus):
    """Vectors, the shortest sequences, with one answer each. vectors: (N, F)."""

    vectors: np.ndarray
    labels: np.ndarray
    weight: np.ndarray | None = None

    @property
    def lengths(self) -> np.ndarray:
        """(N, 1) ones."""
        return np.ones((len(self.vectors), 1), np.int64)

    def batch(self, rows: np.ndarray) -> Batch:
        """The examples with these numbers as a batch."""
        return Batch(
            vectors(self.vectors[rows]),
            labels=_tensor(self.labels, rows),
            weight=_tensor(self.weight, rows),
        )


def vectors(rows: np.ndarray) -> Padded:
    """Vectors (B, F) as sequences of length one, (B, 1, F)."""
    data = torch.from_numpy(np.ascontiguousarray(rows, np.float32)).unsqueeze(1)
    return Padded(data, torch.ones(data.shape[:2], dtype=torch.bool))


def _tensor(values: np.ndarray | None, rows: np.ndarray) -> torch.Tensor | None:
    return None if values is None else torch.from_numpy(np.ascontiguousarray(values[rows]))


def _update(mark: "hashlib._Hash", value: object) -> None:
    """Adds a part of a corpus to a fingerprint."""
    if isinstance(value, TokenRows):
        for part in value.parts():  # the same for any width of numbers, and for parts of a file
            mark.update(part.astype(np.int32).tobytes())
        for start in range(0, len(value.lengths), AT_ONCE):
            mark.update(value.lengths[start : start + AT_ONCE].astype(np.int64).tobytes())
    elif isinstance(value, np.ndarray):
        mark.update(np.ascontiguousarray(value).tobytes())
    else:
        mark.update(repr(value).encode())
