"""Corpora: examples as numbers, ready to be made into batches."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import torch

from regard.data.corpus.order import batches
from regard.data.corpus.ragged import Ragged, Rows
from regard.data.tensors.padded import Batch


class Corpus(ABC):
    """Examples that can be put in order and made into batches.

    sequential: whether each batch goes on where the one before it ended.
    """

    sequential: bool = False

    @property
    @abstractmethod
    def lengths(self) -> np.ndarray:
        """(N, sides): tokens of each side of each example."""

    @abstractmethod
    def batch(self, rows: np.ndarray) -> Batch:
        """The examples with these numbers as a batch."""

    def __len__(self) -> int:
        return len(self.lengths)

    def longest(self) -> list[int]:
        """The most tokens of each side that a model reads at once."""
        return self.lengths.max(0).tolist() if len(self) else []

    def order(self, tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
        """The batches of an epoch, as rows: a pure function, so that a run can be resumed."""
        return batches(self.lengths, tokens, seed, epoch)

    def passes(self, batch_size: int) -> Iterator[Batch]:
        """Every example once, by length, for evaluation."""
        order = self.lengths.max(1).argsort(kind="stable")
        for start in range(0, len(order), batch_size):
            yield self.batch(order[start : start + batch_size])

    def sample(self, batch_size: int, most: int) -> list[Batch]:
        """Batches to measure a model on: every example, by length; at most `most` windows of
        running text."""
        return list(self.passes(batch_size))

    def digest(self) -> str:
        """A fingerprint of all numbers, in their order."""
        mark = hashlib.sha256()
        for part in fields(self):  # type: ignore[arg-type]
            _update(mark, getattr(self, part.name))
        return mark.hexdigest()[:32]


@dataclass(frozen=True)
class PairCorpus(Corpus):
    """Sources and target sequences of the same examples."""

    source: Rows
    target: Ragged

    @property
    def lengths(self) -> np.ndarray:
        """(N, 2): positions of source and target, closing tokens included."""
        return np.stack([self.source.lengths, self.target.lengths], 1)

    def __len__(self) -> int:
        return len(self.source)

    def take(self, rows: np.ndarray) -> "PairCorpus":
        """The corpus of these rows."""
        return PairCorpus(self.source.take(rows), self.target.take(rows))

    def batch(self, rows: np.ndarray) -> Batch:
        """The examples with these numbers as a batch."""
        return Batch(self.source.pad(rows), self.target.pad(rows))


@dataclass(frozen=True)
class SourceCorpus(Corpus):
    """Sequences, with something that was given for each or for its positions."""

    source: Rows

    @property
    def lengths(self) -> np.ndarray:
        """(N, 1): positions of each sequence."""
        return self.source.lengths[:, None]


@dataclass(frozen=True)
class TagCorpus(SourceCorpus):
    """Sequences with a label for each position. weight: (N,), how much each counts."""

    target: Ragged
    weight: np.ndarray | None = None

    def batch(self, rows: np.ndarray) -> Batch:
        weight = _tensor(self.weight, rows)
        return Batch(self.source.pad(rows), self.target.pad(rows), weight=weight)


@dataclass(frozen=True)
class LabelCorpus(SourceCorpus):
    """Sequences with one answer each. labels: (N,) classes or (N, C) numbers; weight: (N,)."""

    labels: np.ndarray
    weight: np.ndarray | None = None

    def batch(self, rows: np.ndarray) -> Batch:
        labels, weight = (_tensor(values, rows) for values in (self.labels, self.weight))
        return Batch(self.source.pad(rows), labels=labels, weight=weight)


def _tensor(values: np.ndarray | None, rows: np.ndarray) -> torch.Tensor | None:
    return None if values is None else torch.from_numpy(np.ascontiguousarray(values[rows]))


def _update(mark: "hashlib._Hash", value: object) -> None:
    """Adds a part of a corpus to a fingerprint."""
    if isinstance(value, Rows):
        value.update(mark)
    elif isinstance(value, np.ndarray):
        mark.update(np.ascontiguousarray(value).tobytes())
    else:
        mark.update(repr(value).encode())
