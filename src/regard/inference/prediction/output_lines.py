"""Answers as they are printed: lines, n-best lists, JSON objects."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from regard.core.errors import UserError
from regard.data.tensors.special import EOS, SPECIALS
from regard.inference.prediction.input_items import InputItem
from regard.tasks.task import Prediction

Alternative = tuple[str, float, Prediction]  # symbol, its probability, the best answer with it


@dataclass(frozen=True)
class Form:
    """How answers are written. In JSON: symbols, each with its score; alignment, from these to
    the symbols of the source; alternatives, so many at the place behind the prefix."""

    nbest: int = 1
    json_lines: bool = False
    symbols: bool = False
    alignment: bool = False
    alternatives: int = 0
    names: Callable[[str], list[str]] | None = None  # the symbols of a source

    def check(self) -> None:
        """Refuses what is only written in JSON."""
        if (self.symbols or self.alignment) and not self.json_lines:
            raise UserError("--symbols, --alignments: only JSON has room for them; add --json")
        if self.alternatives and (self.nbest > 1 or self.alignment):
            raise UserError(
                "--alternatives: are answers of their own; without --nbest, --alignments"
            )

    def line(self, question: InputItem, found: Prediction) -> str:
        """An answer as it is printed, line ends and all."""
        if self.json_lines:
            between = question.render is not None and not question.source  # a blank line
            return "" if between else _json(self.record(question.source, found))
        if question.render is not None:
            return question.render(found)
        return self._plain(found)

    def _plain(self, found: Prediction) -> str:
        """The answer, or with n-best each, with its score, where it has one, and a tab."""
        if self.nbest == 1:
            return f"{found.text}\n"
        others = found.alternatives
        scores = ["" if other.score is None else f"{other.score:.4f}\t" for other in others]
        return "".join(f"{s}{other.text}\n" for s, other in zip(scores, others, strict=True))

    def record(self, source: Any, found: Prediction) -> dict[str, Any]:
        """The JSON object for a source."""
        record: dict[str, Any] = {"source": source, "prediction": found.shown()}
        record |= _score(found.score) | self._symbols(found)
        if self.nbest > 1:
            record["nbest"] = [
                {"text": o.text} | _score(o.score) | self._symbols(o) for o in found.alternatives
            ]
        record |= {"probabilities": found.probabilities} if found.probabilities else {}
        record |= {"confidence": found.confidence} if found.confidence is not None else {}
        tagged = isinstance(source, tuple) and found.symbol_scores
        record |= {"confidences": found.symbol_scores} if tagged else {}
        record |= {"unknown": list(found.unknown)} if found.unknown else {}
        if self.alignment and self.names:
            record["source_symbols"] = self.names(source)
            record["alignment"] = [[round(w, 4) for w in row] for row in found.alignment]
        return record

    def options(self, source: str, prefix: str, found: list[Alternative]) -> str:
        """How an answer may go on behind a prefix: lines, or one JSON object."""
        if not self.json_lines:
            return "".join(f"{p:.4f}\t{symbol}\t{best.text}\n" for symbol, p, best in found)
        rows = [
            {"symbol": symbol, "probability": round(p, 6), "text": best.text}
            | _score(best.score)
            | self._symbols(best)
            for symbol, p, best in found
        ]
        return _json({"source": source, "prefix": prefix, "alternatives": rows})

    def _symbols(self, found: Prediction) -> dict[str, Any]:
        """Each symbol with its log probability, where the engine gives one; the end comes last."""
        if not (self.symbols or self.alignment):
            return {}
        names = [*found.symbols, SPECIALS[EOS]]
        scores: list[float | None] = [round(score, 6) for score in found.symbol_scores]
        scores = scores or [None] * len(names)
        return {"symbols": [list(pair) for pair in zip(names, scores, strict=True)]}


def _json(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"


def _score(score: float | None) -> dict[str, float]:
    """Rounded: the digits behind depend on what a text is answered together with."""
    return {} if score is None else {"score": round(score, 6)}
