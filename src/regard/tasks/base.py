"""The contract of a Task: all that the loop, validation and prediction know of the data.

The options of a task make it: `options.fit(pairs)` from data, `options.load(folder)` from a run.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from regard.data.corpus import Corpus
from regard.data.read import Example, Pair


@dataclass(frozen=True)
class Prediction:
    """One answer. unknown: symbols of the source that training never saw; cut: whether the answer
    ended because it came to its limit."""

    text: str
    score: float
    symbol_scores: tuple[float, ...] = ()
    symbols: tuple[str, ...] = ()
    alternatives: tuple["Prediction", ...] = ()
    unknown: tuple[str, ...] = ()
    cut: bool = False


@dataclass(frozen=True)
class Choice:
    """A setting that was chosen from the data, and why."""

    key: str
    value: Any
    why: str


@dataclass(frozen=True)
class Facts:
    """What sizes are chosen from. symbols: of both sides, over all examples; subwords: whether
    the output is made of words or pieces of words."""

    examples: int
    symbols: int
    vocabulary: int
    subwords: bool


class Task(ABC):
    """Text to batches, outputs to text, and the measures that fit."""

    metric: str  # the measure that decides which model is best

    @abstractmethod
    def corpus(self, pairs: Sequence[Pair]) -> Corpus:
        """The pairs as numbers, ready for training."""

    @abstractmethod
    def facts(self, corpus: Corpus) -> Facts:
        """What the choice of a model depends on."""

    @abstractmethod
    def build(self, options: Any) -> nn.Module:
        """The model of these options, with what only the data knows: vocabulary sizes."""

    @abstractmethod
    def predict(
        self,
        model: nn.Module,
        sources: Sequence[str],
        search: Any,
        nbest: int = 1,
        batch_size: int = 64,
    ) -> list[Prediction]:
        """The model's answers, in the order of the sources."""

    @abstractmethod
    def score(self, outputs: Sequence[str], examples: Sequence[Example]) -> dict[str, float]:
        """Measures by name."""

    @abstractmethod
    def intervals(
        self, outputs: Sequence[str], examples: Sequence[Example]
    ) -> dict[str, tuple[float, float]]:
        """95 % intervals of the same measures."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Writes all that `load` needs."""
