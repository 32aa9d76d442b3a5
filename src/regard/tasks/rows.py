"""Encoded sources from which batches are built; a row is one source."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.data.corpus.ragged import Rows
from regard.data.tensors.padded import Padded
from regard.inputs.input import Input
from regard.search.search import SearchResult
from regard.tasks.batches import plan


class SourceRows(ABC):
    """Encoded sources from which batches are built.

    lengths: approximate length of each source, for sorting. uniform: whether only sources of equal
    length can share a batch.
    """

    lengths: Any
    uniform: bool = False

    def pad(self, rows: Any) -> Any:
        """Return a padded batch of these sources. rows: their indices."""
        raise NotImplementedError

    @abstractmethod
    def row(self, number: int) -> Any:
        """Return the token ids of a source; None if the source is not encoded yet."""

    def batches(self, rows: int | None, max_tokens: int, workers: int) -> list[list[int]]:
        """Return the sources of each batch, as indices. Arguments as in `plan`."""
        return plan(self.lengths, rows, max_tokens, workers, self.uniform)

    def results(self, rows: Sequence[int], found: Sequence[SearchResult]) -> list[SearchResult]:
        """Return the result of each of these sources from those of the rows of their batch."""
        return list(found)


class InputRows(SourceRows):
    """Sources that are encoded only when their batch is built."""

    def __init__(self, source: Input, sources: Sequence[Any]) -> None:
        self.source, self.sources = source, sources
        self.lengths = [source.length(one) for one in sources]

    def pad(self, rows: Sequence[int]) -> Padded:
        return self.source.batch([self.sources[i] for i in rows])

    def row(self, number: int) -> None:
        return None


class EncodedRows(SourceRows):
    """Sources that are encoded already."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.lengths, self.uniform = rows.lengths, rows.uniform

    def pad(self, rows: Any) -> Padded:
        return self.rows.pad(np.asarray(rows))

    def all(self) -> Padded:
        """Return all sources as one batch."""
        return self.rows.all()

    def row(self, number: int) -> np.ndarray:
        """Return the token ids of a source."""
        return self.rows.row(number)


class PromptRows(SourceRows):
    """Prompts as token ids. Only prompts of equal length share a batch."""

    uniform = True

    def __init__(self, prompts: list[list[int]]) -> None:
        self.prompts = prompts
        self.lengths = [len(prompt) for prompt in prompts]

    def row(self, number: int) -> np.ndarray:
        """Return the token ids of a prompt."""
        return np.array(self.prompts[number], np.int64)
