"""The contract of a question: a source that a model is inspected with, and its prediction.

The model can be run over any number of copies of it, to change something in each.
R parts of the prediction (tokens, tags, labels or numbers), n copies, V outputs of each part.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.nn.capture import Capture
from regard.tasks.questions.notes import Note

NUMBERS = 2_000_000  # of one attention map, over all copies: more are asked one part at a time
OUTPUTS = 20_000_000  # numbers that the output layer gives, over all copies
LIMIT = 200  # tokens of a side
OTHERS = 5  # runners-up of each token
Axis = Literal["source", "target", "inputs", "one"]


@dataclass(frozen=True)
class TokenizedText:
    """A text and its tokens, as they are printed."""

    text: str
    tokens: tuple[str, ...]


@dataclass(frozen=True)
class OutputStep:
    """One output token with its probability, or one predicted number with its value.

    alternatives: the most probable other tokens, in descending order. given: whether the token is
    part of the prompt of a language model.
    """

    token: str
    probability: float | None
    alternatives: tuple[tuple[str, float], ...] = ()
    value: float | None = None
    given: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the step for JSON; a number has a value in place of a probability."""
        value = {"value": self.value}
        if self.probability is not None:
            value = {"probability": self.probability}
        alternatives = [list(pair) for pair in self.alternatives]
        found = {"token": self.token, **value, "alternatives": alternatives}
        return found | ({"given": True} if self.given else {})


@dataclass(frozen=True, kw_only=True)
class QuestionFacts:
    """What is shown of a question besides what is inside of the model.

    forced: whether the target was passed by the user (forced decoding). inputs: tokens read by the
    decoder. truncated: whether the output reached its length limit. tree: the search tree, ready
    for JSON. notes: what is missing, and why.
    """

    source: TokenizedText
    target: TokenizedText
    steps: tuple[OutputStep, ...]
    forced: bool = False
    inputs: tuple[str, ...] = ()
    score: float | None = None
    truncated: bool = False
    unknown_tokens: tuple[str, ...] = ()
    tree: dict[str, Any] | None = None
    notes: tuple[Note, ...] = ()


def no_step() -> None:
    """Let the passes continue."""


@dataclass(frozen=True)
class Asked:
    """What is asked of a model. target: what it is held to predict, in place of its own prediction;
    limit: maximum tokens per side; on_step: is called between passes and may raise to cancel."""

    predictor: Any
    source: Any
    target: str | None = None
    search: Any = None
    limit: int = LIMIT
    on_step: Callable[[], None] = no_step

    @property
    def task(self) -> Any:
        """The task of the model."""
        return self.predictor.task

    @property
    def forced(self) -> bool:
        """Whether the user passed a target."""
        return self.target is not None

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        found: torch.device = self.predictor.engine.device
        return found

    @cached_property
    def model(self) -> Any:
        """The model as torch trains it."""
        return self.predictor.engine.inside().eval()

    def refuse_longer(self, what: str, count: int, how: str) -> None:
        """Raise TooLong for a side of so many tokens: a map of it would be too large to look at."""
        if count > self.limit:
            raise TooLong(
                what,
                count,
                f"{what}: {count:,} tokens, but maps of more than {self.limit:,} a side are too "
                f"large to look at; {how}",
            )


class TooLong(UserError):
    """A side of more tokens than are shown. said: without how the limit is raised, which differs
    between a command and a server."""

    def __init__(self, what: str, count: int, said: str) -> None:
        super().__init__(f"{said}, or raise the limit: --max-tokens {count}")
        self.what, self.count, self.said = what, count, said


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    """What is asked of a model, and what it is held to predict. facts: what is shown of it, once
    that is known."""

    asked: Asked
    facts: QuestionFacts | None = None

    @property
    def rows(self) -> Axis:
        """What the parts of the prediction are in a map: target tokens, or one."""
        return "target"

    @property
    def shows(self) -> frozenset[str]:
        """What can be seen of the model, of attention, gates and saliency."""
        return frozenset({"attention", "gates", "saliency"})

    @abstractmethod
    def each(self, parts: list[int]) -> Tensor:
        """Return (n,): the log odds of each of these parts, in a copy of its own, or the
        numbers."""

    @abstractmethod
    def read(self) -> None:
        """Run the model once over the source, for others to look at."""

    @abstractmethod
    def totals(self, copies: int) -> Tensor:
        """Return (n,): the log probability of the whole prediction, or the sum of its numbers."""

    @abstractmethod
    def lengths(self) -> tuple[int, int]:
        """Return R, and the most tokens on one side."""

    def outputs(self) -> int:
        """Return how many numbers the output layer gives for each part of the prediction."""
        return 1

    def at_once(self) -> int:
        """Return how many copies fit into memory, attention of many heads and layers included."""
        parts, longest = self.lengths()
        given = parts * self.outputs()
        return max(1, min(NUMBERS // (8 * longest * longest), OUTPUTS // given))

    def totals_at_once(self) -> int:
        """Return for how many copies `totals` can be asked together."""
        return self.at_once()

    def dear(self, heads: int) -> bool:
        """Return whether it would take too long to ask again for each of so many heads."""
        return False

    def saliency(self, captured: Capture, score: Tensor) -> dict[str, Tensor]:
        """Return how strongly a number depends on each input (n, positions), by module."""
        return captured.saliency(score)

    def notes(self, seen: Sequence[Note]) -> tuple[Note, ...]:
        """Return what is said besides the numbers. seen: of attention, heads and gates."""
        assert self.facts is not None
        return (*self.facts.notes, *seen)
