"""Corpora: encoded examples, ready for batching.

A side is the source or the target of an example. N is the number of examples, C of classes or
target numbers.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import torch

from regard.data.corpus.order import batch_order
from regard.data.corpus.ragged import Ragged, Rows
from regard.data.tensors.padded import Batch, Padded


class Corpus(ABC):
    """Encoded examples that can be ordered and batched.

    sequential: whether each batch continues the text of the previous batch.
    """

    sequential: bool = False

    @property
    @abstractmethod
    def lengths(self) -> np.ndarray:
        """Number of tokens of each example and side: (N, sides)."""

    @abstractmethod
    def batch(self, rows: np.ndarray) -> Batch:
        """Return the examples with these indices as a batch."""

    def __len__(self) -> int:
        return len(self.lengths)

    def longest(self) -> list[int]:
        """Return the number of tokens of the longest example, per side."""
        return self.lengths.max(0).tolist() if len(self) else []

    def order(self, tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
        """Return the batches of an epoch as arrays of example indices.

        The result depends only on the arguments and the corpus, so that a run can resume.
        """
        return batch_order(self.lengths, tokens, seed, epoch)

    def passes(self, batch_size: int) -> Iterator[Batch]:
        """Yield batches for evaluation: every example once, sorted by length."""
        order = self.lengths.max(1).argsort(kind="stable")
        for start in range(0, len(order), batch_size):
            yield self.batch(order[start : start + batch_size])

    def sample(self, batch_size: int, max_batches: int) -> list[Batch]:
        """Return batches for evaluation: every example once, sorted by length.

        Only `StreamCorpus` uses `max_batches`.
        """
        return list(self.passes(batch_size))

    def digest(self) -> str:
        """Return a hash of all examples in order."""
        digest = hashlib.sha256()
        for part in fields(self):  # type: ignore[arg-type]
            _update(digest, getattr(self, part.name))
        return digest.hexdigest()[:32]


@dataclass(frozen=True)
class PairCorpus(Corpus):
    """Pairs of a source and a target sequence."""

    source: Rows
    target: Ragged

    @property
    def lengths(self) -> np.ndarray:
        """Number of positions of each source and target, EOS included: (N, 2)."""
        return np.stack([self.source.lengths, self.target.lengths], 1)

    def __len__(self) -> int:
        return len(self.source)

    def take(self, rows: np.ndarray) -> "PairCorpus":
        """Return a corpus with only the examples of these indices."""
        return PairCorpus(self.source.take(rows), self.target.take(rows))

    def batch(self, rows: np.ndarray) -> Batch:
        """Return the examples with these indices as a batch."""
        return Batch(self.source.pad(rows), self.target.pad(rows))


@dataclass(frozen=True)
class SourceCorpus(Corpus):
    """Base class for source sequences with one target per sequence or per position."""

    source: Rows

    @property
    def lengths(self) -> np.ndarray:
        """Number of positions of each source: (N, 1)."""
        return self.source.lengths[:, None]


@dataclass(frozen=True)
class TagCorpus(SourceCorpus):
    """Sequences with one label per position. weight: (N,), weight of each example in the loss."""

    target: Ragged
    weight: np.ndarray | None = None

    def batch(self, rows: np.ndarray) -> Batch:
        weight = _tensor(self.weight, rows)
        return Batch(self.source.pad(rows), self.target.pad(rows), weight=weight)


@dataclass(frozen=True)
class NodeCorpus(SourceCorpus):
    """Graphs with a label per node. target: class ids; negative for nodes without a label."""

    target: Ragged

    def batch(self, rows: np.ndarray) -> Batch:
        """Return the graphs with all their nodes. The weight (B, S) of unlabeled nodes is 0."""
        found = self.target.pad(rows)
        weight = (found.mask & (found.data >= 0)).float()
        target = Padded(found.data.clamp(min=0), found.mask)
        return Batch(self.source.pad(rows), target, weight=weight)


@dataclass(frozen=True)
class LabelCorpus(SourceCorpus):
    """Sequences with one target each.

    labels: (N,) classes or (N, C) numbers. weight: (N,), weight of each example in the loss.
    """

    labels: np.ndarray
    weight: np.ndarray | None = None

    def batch(self, rows: np.ndarray) -> Batch:
        labels, weight = (_tensor(values, rows) for values in (self.labels, self.weight))
        return Batch(self.source.pad(rows), labels=labels, weight=weight)


def _tensor(values: np.ndarray | None, rows: np.ndarray) -> torch.Tensor | None:
    return None if values is None else torch.from_numpy(np.ascontiguousarray(values[rows]))


def _update(digest: "hashlib._Hash", value: object) -> None:
    """Add the value of a corpus field to a hash."""
    if isinstance(value, Rows):
        value.update(digest)
    elif isinstance(value, np.ndarray):
        digest.update(np.ascontiguousarray(value).tobytes())
    else:
        digest.update(repr(value).encode())
