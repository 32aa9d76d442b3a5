"""A text put to a model: it can be asked in any number of copies, to change something in each.

R parts of the answer (symbols, tags, labels or numbers), n copies, T target and S source symbols.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

NUMBERS = 2_000_000  # of one attention map, over all copies: more are asked one part at a time
OUTPUTS = 20_000_000  # numbers that the output layer gives, over all copies


class Question(ABC):
    """A model, what it read and what it is held to answer."""

    model: nn.Module

    @abstractmethod
    def each(self, parts: list[int]) -> Tensor:
        """(n,): the log odds of each of these parts, in a copy of its own, or the numbers."""

    @abstractmethod
    def read(self) -> None:
        """Runs the model once over the text, for others to look at."""

    @abstractmethod
    def total(self) -> float:
        """The log probability of the whole answer, or the sum of its numbers."""

    def dear(self, heads: int) -> bool:
        """Whether it would take too long to ask again for each of so many heads."""
        return False

    @abstractmethod
    def lengths(self) -> tuple[int, int]:
        """R, and the most symbols on one side."""

    def outputs(self) -> int:
        """How many numbers the output layer gives for each part of the answer."""
        return 1

    def at_once(self) -> int:
        """How many copies fit into memory, attention of many heads and layers included."""
        parts, longest = self.lengths()
        given = parts * self.outputs()
        return max(1, min(NUMBERS // (8 * longest * longest), OUTPUTS // given))


class Scored(Question):
    """One whose whole answer is scored in one pass, so that copies tell what several changes do."""

    @abstractmethod
    def scores(self, copies: int) -> Tensor:
        """(n, R): the log probability of each part of the answer, or the numbers themselves.

        Their sum is that of the whole answer; (n, 1) where only the whole has one.
        """

    def read(self) -> None:
        self.scores(1)

    def total(self) -> float:
        return float(self.scores(1).double().sum())


def log_odds(logits: Tensor, chosen: list[int]) -> Tensor:
    """(n,): log p - log(1 - p) of one symbol of each row (n, V).

    Its gradient is that of log p, but for a factor; it does not vanish where p comes close to 1.
    """
    own = torch.zeros_like(logits, dtype=torch.bool)
    own[torch.arange(len(chosen)), chosen] = True
    return logits[own] - logits.masked_fill(own, float("-inf")).logsumexp(-1)
