"""Sources as rows, of which batches are made."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from regard.data.tensors.padded import Padded
from regard.inputs.input import Input


class SourceRows(Protocol):
    """Sources of which batches are made. lengths: near enough for sorting; uniform: whether only
    sources of equal length can be together."""

    lengths: Any
    uniform: bool

    def pad(self, rows: Any) -> Any:
        """Return these sources as one tensor."""

    def row(self, number: int) -> Any:
        """Return the numbers of a source, if they are there."""


class InputRows:
    """Sources that become numbers batch by batch."""

    uniform = False

    def __init__(self, source: Input, sources: Sequence[Any]) -> None:
        self.source, self.sources = source, sources
        self.lengths = [source.length(one) for one in sources]

    def pad(self, rows: Sequence[int]) -> Padded:
        return self.source.batch([self.sources[i] for i in rows])

    def row(self, number: int) -> None:
        return None


class PromptRows:
    """Prompts as tokens, to be continued together if they have one length."""

    uniform = True

    def __init__(self, prompts: list[list[int]]) -> None:
        self.prompts = prompts
        self.lengths = [len(prompt) for prompt in prompts]

    def row(self, number: int) -> np.ndarray:
        """The tokens of a prompt."""
        return np.array(self.prompts[number], np.int64)
