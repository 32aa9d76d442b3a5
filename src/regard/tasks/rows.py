"""Sources as rows, which batches are made of."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from regard.data.tensors.padded import Padded
from regard.inputs.input import Input


class SourceRows(Protocol):
    """Sources that batches are made of. lengths: approximate, for sorting; uniform: whether only
    sources of equal length can share a batch."""

    lengths: Any
    uniform: bool

    def pad(self, rows: Any) -> Any:
        """Return these sources as one tensor."""

    def row(self, number: int) -> Any:
        """Return the token ids of a source, if they are known."""


class InputRows:
    """Sources that are encoded batch by batch."""

    uniform = False

    def __init__(self, source: Input, sources: Sequence[Any]) -> None:
        self.source, self.sources = source, sources
        self.lengths = [source.length(one) for one in sources]

    def pad(self, rows: Sequence[int]) -> Padded:
        return self.source.batch([self.sources[i] for i in rows])

    def row(self, number: int) -> None:
        return None


class PromptRows:
    """Prompts as tokens; only prompts of equal length share a batch."""

    uniform = True

    def __init__(self, prompts: list[list[int]]) -> None:
        self.prompts = prompts
        self.lengths = [len(prompt) for prompt in prompts]

    def row(self, number: int) -> np.ndarray:
        """Return the tokens of a prompt."""
        return np.array(self.prompts[number], np.int64)
