"""Values that tasks take and return: predictions, constraints, input items, evaluations."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.data.reading.read import Example
from regard.data.tensors.special import EOS, SPECIALS

BRIEF = ("text", "score")  # the fields of each prediction in an n-best list
WITH_PROBABILITY = (*BRIEF, "probability")
TOKENS = ("text", "value", "score", "tokens", "token_logprobs")
REST = ("unknown_tokens", "folded", "truncated", "confidence", "probabilities", "alignment")
FIELDS, NBEST_FIELDS = (*TOKENS, *REST), (*TOKENS, "nbest", *REST)
ALWAYS = ("value", "prediction")  # fields that are in the JSON even if they are None


@dataclass(frozen=True)
class Prediction:
    """The prediction for one source.

    text: the prediction as printed. value: the prediction as a Python value: a text, or a tuple of
    labels, tags or numbers. score: the score by which the search ranks outputs (a log
    probability), or None. token_logprobs: log probability of each output token; for tags, the
    probability of each tag. unknown_tokens: tokens of the source that are not in the vocabulary.
    folded: characters of the source that were read as similar ones in the vocabulary, as `A → a`.
    truncated: whether the output reached the length limit. is_scalar: whether `value` always has
    one element, which the JSON shows without a list. alignment: for each output token and EOS,
    the attention to each source token, EOS included.
    """

    text: str
    score: float | None
    token_logprobs: tuple[float, ...] = ()
    tokens: tuple[str, ...] = ()
    nbest: tuple["Prediction", ...] = ()
    unknown_tokens: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()
    truncated: bool = False
    value: Any = None
    confidence: float | None = None
    probabilities: dict[str, float] | None = None
    is_scalar: bool = False
    alignment: tuple[tuple[float, ...], ...] = ()

    def json_value(self) -> Any:
        """Return the value for JSON, without a tuple around a scalar."""
        return self.value[0] if self.is_scalar else self.value

    def as_dict(
        self,
        fields: Sequence[str] = FIELDS,
        nbest_fields: Sequence[str] = BRIEF,
        digits: int | None = 6,
        eos: bool = False,
    ) -> dict[str, Any]:
        """Return these fields of the prediction for JSON, in this order, without empty fields.

        nbest_fields: the fields of each prediction in the n-best list. digits: decimals of
        probabilities and attention (None: all). eos: append EOS to the tokens.
        """
        values = {name: self._field(name, nbest_fields, digits, eos) for name in fields}
        return {name: one for name, one in values.items() if one is not None or name in ALWAYS}

    def _field(self, name: str, nbest_fields: Sequence[str], digits: int | None, eos: bool) -> Any:
        match name:
            case "text":
                return self.text
            case "value" | "prediction":
                return self.json_value()
            case "score":  # further digits vary with the composition of the batch
                return None if self.score is None else round(self.score, 6)
            case "tokens" if eos:
                return [*self.tokens, SPECIALS[EOS]]
            case "tokens":
                return self.tokens if self.tokens or self.token_logprobs else None
            case "token_logprobs":
                return _rounded(self.token_logprobs) or None
            case "probability" if self.token_logprobs:  # of a generated text, EOS included
                return float(f"{math.exp(math.fsum(self.token_logprobs)):.6g}")
            case "confidences":
                return self.token_logprobs or None
            case "confidence" if self.confidence is not None:
                return _rounded([self.confidence], digits)[0]
            case "nbest":
                return [one.as_dict(nbest_fields, eos=eos) for one in self.nbest] or None
            case "probabilities" if self.probabilities:
                rounded = _rounded(self.probabilities.values(), digits)
                return dict(zip(self.probabilities, rounded, strict=True))
            case "alignment":
                return [_rounded(row, digits) for row in self.alignment] or None
            case "unknown_tokens" | "folded" | "truncated":
                return getattr(self, name) or None
        return None


def _rounded(numbers: Iterable[float], digits: int | None = 6) -> list[Any]:
    return [number if digits is None else round(number, digits) for number in numbers]


@dataclass(frozen=True)
class Constraints:
    """Constraints on the prediction for one source: a prefix, required words, banned words."""

    prefix: str = ""
    require: tuple[str, ...] = ()
    ban: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InputItem:
    """A source and the input text it was parsed from.

    render: formats the prediction for output; None: one line per prediction. constraints: the
    constraints on the prediction of this source, if any. name: printed before the prediction;
    empty unless the text only names the source, such as a file.
    """

    source: Any
    text: str
    render: Callable[[Prediction], str] | None = None
    constraints: Constraints | None = None
    name: str = ""


@dataclass(frozen=True)
class Evaluation:
    """Results of an evaluation. details: tables and data for figures, ready for JSON."""

    scores: dict[str, float]
    loss: float
    predictions: list[Prediction]
    details: dict[str, Any] = field(default_factory=dict)


def predicted_and_expected(
    predictions: Sequence[Prediction], examples: Sequence[Example]
) -> tuple[list[Any], list[Any]]:
    """Return the predicted values and the expected values (first references)."""
    return [p.value for p in predictions], [e.references[0] for e in examples]


def to_text(side: Any) -> str:
    """Return a source or a target as one text."""
    if isinstance(side, str):
        return side
    return " ".join(part if isinstance(part, str) else f"{part:.6g}" for part in side)
