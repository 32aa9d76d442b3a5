"""Encoded sources from which batches are built; a row is one source."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from regard.data.tensors.padded import Padded
from regard.inputs.input import Input


class SourceRows(Protocol):
    """Encoded sources from which batches are built.

    lengths: approximate length of each source, for sorting. uniform: whether only sources of equal
    length can share a batch.
    """

    lengths: Any
    uniform: bool

    def pad(self, rows: Any) -> Any:
        """Return a padded batch of these sources. rows: their indices."""

    def row(self, number: int) -> Any:
        """Return the token ids of a source; None if the source is not encoded yet."""


class InputRows:
    """Sources that are encoded only when their batch is built."""

    uniform = False

    def __init__(self, source: Input, sources: Sequence[Any]) -> None:
        self.source, self.sources = source, sources
        self.lengths = [source.length(one) for one in sources]

    def pad(self, rows: Sequence[int]) -> Padded:
        return self.source.batch([self.sources[i] for i in rows])

    def row(self, number: int) -> None:
        return None


class PromptRows:
    """Prompts as token ids. Only prompts of equal length share a batch."""

    uniform = True

    def __init__(self, prompts: list[list[int]]) -> None:
        self.prompts = prompts
        self.lengths = [len(prompt) for prompt in prompts]

    def row(self, number: int) -> np.ndarray:
        """Return the token ids of a prompt."""
        return np.array(self.prompts[number], np.int64)
