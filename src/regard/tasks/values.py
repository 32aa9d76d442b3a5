"""What tasks give and take: predictions, facts of the data, what was chosen, evaluations."""

from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Prediction:
    """One answer. text: as it is printed; value: as it is (a text, labels, tags, numbers);
    score: log probability, as the search ranks it, or None; unknown: symbols of the source that
    training never saw; cut: whether the answer ended because it came to its limit; single: whether
    a value that is a tuple always holds one thing, and is shown as that; alignment: for each
    symbol, and the end, how much of its attention each source symbol had (the end is one too)."""

    text: str
    score: float | None
    symbol_scores: tuple[float, ...] = ()
    symbols: tuple[str, ...] = ()
    alternatives: tuple["Prediction", ...] = ()
    unknown: tuple[str, ...] = ()
    cut: bool = False
    value: Any = None
    confidence: float | None = None
    probabilities: dict[str, float] | None = None
    single: bool = False
    alignment: tuple[tuple[float, ...], ...] = ()

    def shown(self) -> Any:
        """The value as JSON shows it."""
        return self.value[0] if self.single else self.value


@dataclass(frozen=True)
class Request:
    """What is asked of the answer to one source: how it begins, words it must have or not have."""

    prefix: str = ""
    must: tuple[str, ...] = ()
    ban: tuple[str, ...] = ()


@dataclass(frozen=True)
class Facts:
    """What sizes are chosen from. symbols: of all sides, over all examples; vocabulary: possible
    outputs; subwords: whether symbols are words or pieces of words; task: its kind; vectors:
    numbers of a vector, where examples are vectors; inputs: symbols that a source may have; source:
    the kind of its input."""

    examples: int
    symbols: int
    vocabulary: int
    subwords: bool
    task: str = "transduce"
    vectors: int = 0
    inputs: int = 0
    source: str = "text"


class DataCheck(Protocol):
    """What a check of the data found."""

    warnings: list[str]

    def as_dict(self) -> dict[str, object]:
        """All of it, ready for JSON."""

    def lines(self) -> list[str]:
        """The full report as plain text."""

    def short(self) -> list[str]:
        """What matters during training."""


@dataclass(frozen=True)
class Evaluation:
    """Scores by name, the loss, the predictions they were made from, and what is behind them."""

    scores: dict[str, float]
    loss: float
    predictions: list[Prediction]
    details: dict[str, Any] = field(default_factory=dict)
