"""What tasks give and take: predictions, what was chosen, evaluations."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.data.reading.read import Example
from regard.data.tensors.special import EOS, SPECIALS

BRIEF = ("text", "score")  # the parts of an alternative
TOKENS = ("text", "value", "score", "tokens", "token_logprobs")
REST = ("unknown", "cut", "confidence", "probabilities", "alignment")
PARTS, NBEST_PARTS = (*TOKENS, *REST), (*TOKENS, "alternatives", *REST)
ALWAYS = ("value", "prediction", "nbest")  # parts that JSON shows even if there is nothing in them


@dataclass(frozen=True)
class Prediction:
    """One answer. text: as it is printed; value: as it is (a text, labels, tags, numbers);
    score: log probability, as the search ranks it, or None; unknown: tokens of the source that
    training never saw; cut: whether the answer ended because it came to its limit; single: whether
    a value that is a tuple always holds one thing, and is shown as that; alignment: for each
    token, and the end, how much of its attention each source token had (the end is one too)."""

    text: str
    score: float | None
    token_logprobs: tuple[float, ...] = ()
    tokens: tuple[str, ...] = ()
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

    def as_dict(
        self,
        parts: Sequence[str] = PARTS,
        others: Sequence[str] = BRIEF,
        digits: int | None = 6,
        pairs: bool = False,
    ) -> dict[str, Any]:
        """Return these parts of the prediction for JSON, in this order, without those that do not
        apply.

        others: the parts of alternatives; digits: of probabilities and attention (None: all);
        pairs: each token with its log probability, if there are any, the end last.
        """
        found = {part: self._part(part, others, digits, pairs) for part in parts}
        return {name: part for name, part in found.items() if part is not None or name in ALWAYS}

    def _part(self, name: str, others: Sequence[str], digits: int | None, pairs: bool) -> Any:
        match name:
            case "text":
                return self.text
            case "value" | "prediction":
                return self.shown()
            case "score":  # the digits behind depend on what a text is predicted together with
                return None if self.score is None else round(self.score, 6)
            case "tokens" if pairs:
                names = (*self.tokens, SPECIALS[EOS])
                scores = _rounded(self.token_logprobs) or [None] * len(names)
                return [list(pair) for pair in zip(names, scores, strict=True)]
            case "tokens":
                return self.tokens if self.tokens or self.token_logprobs else None
            case "token_logprobs":
                return _rounded(self.token_logprobs) or None
            case "confidences":
                return self.token_logprobs or None
            case "confidence" if self.confidence is not None:
                return _rounded([self.confidence], digits)[0]
            case "alternatives" | "nbest":
                found = [one.as_dict(others, pairs=pairs) for one in self.alternatives]
                return found or None if name == "alternatives" else found
            case "probabilities" if self.probabilities:
                shares = _rounded(self.probabilities.values(), digits)
                return dict(zip(self.probabilities, shares, strict=True))
            case "alignment":
                return [_rounded(row, digits) for row in self.alignment] or None
            case "unknown" | "cut":
                return getattr(self, name) or None
        return None


def _rounded(numbers: Iterable[float], digits: int | None = 6) -> list[Any]:
    return [number if digits is None else round(number, digits) for number in numbers]


@dataclass(frozen=True)
class Request:
    """What is asked of the answer to one source: how it begins, words it must have or not have."""

    prefix: str = ""
    must: tuple[str, ...] = ()
    ban: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InputItem:
    """A source, and the text it was read from. render: writes its prediction, where that is not
    simply a line; request: what is asked of its prediction, where something is."""

    source: Any
    text: str
    render: Callable[[Prediction], str] | None = None
    request: Request | None = None


@dataclass(frozen=True)
class Evaluation:
    """Scores by name, the loss, the predictions they were made from, and what is behind them."""

    scores: dict[str, float]
    loss: float
    predictions: list[Prediction]
    details: dict[str, Any] = field(default_factory=dict)


def columns(
    predictions: Sequence[Prediction], examples: Sequence[Example]
) -> tuple[list[Any], list[Any]]:
    """What was predicted, and what is expected."""
    return [p.value for p in predictions], [e.references[0] for e in examples]


def plain(side: Any) -> str:
    """A source or an answer as one text."""
    if isinstance(side, str):
        return side
    return " ".join(part if isinstance(part, str) else f"{part:.6g}" for part in side)
