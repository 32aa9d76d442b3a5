"""A text put to a model: it can be asked in any number of copies, to change something in each.

R parts of the answer (symbols, tags, labels or numbers), n copies, T target and S source symbols.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from regard.data.batch import Padded

NUMBERS = 2_000_000  # of one attention map, over all copies: more are asked one part at a time


class Question(ABC):
    """A model, what it read and what it is held to answer."""

    model: nn.Module

    @abstractmethod
    def scores(self, copies: int) -> Tensor:
        """(n, R): the log probability of each part of the answer, or the numbers themselves."""

    def each(self, parts: list[int]) -> Tensor:
        """(n,): the score of each of these parts of the answer, in a copy of its own."""
        found = self.scores(len(parts))
        return found[torch.arange(len(parts)), parts]

    def read(self) -> None:
        """Runs the model once over the text, for others to look at."""
        self.scores(1)

    @abstractmethod
    def lengths(self) -> tuple[int, int]:
        """R, and the most symbols on one side."""

    def at_once(self) -> int:
        """How many copies fit into memory, attention of many heads and layers included."""
        longest = self.lengths()[1]
        return max(1, NUMBERS // (8 * longest * longest))


def copied(side: Padded, copies: int) -> Padded:
    """One row as several alike."""
    shape = [copies, *[-1] * (side.data.ndim - 1)]
    return Padded(side.data.expand(shape), side.mask.expand(copies, -1))
