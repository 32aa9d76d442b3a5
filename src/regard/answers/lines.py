"""Answers as they are printed: lines, n-best lists, JSON objects."""

import json
from dataclasses import dataclass
from typing import Any

from regard.answers.questions import Question
from regard.data.vocabulary import EOS, SPECIALS
from regard.tasks.base import Prediction


@dataclass(frozen=True)
class Form:
    """How answers are written."""

    nbest: int = 1
    json_lines: bool = False
    symbols: bool = False  # in JSON: each symbol with its score

    def line(self, question: Question, found: Prediction) -> str:
        """An answer as it is printed, line ends and all."""
        if self.json_lines:
            between = question.render is not None and not question.source  # a blank line
            return "" if between else self._json(question.source, found)
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

    def _json(self, source: Any, found: Prediction) -> str:
        """One JSON object for a source."""
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
        return json.dumps(record, ensure_ascii=False) + "\n"

    def _symbols(self, found: Prediction) -> dict[str, Any]:
        """Each symbol with its log probability; the last one is the end of the answer."""
        if not self.symbols:
            return {}
        names = [*found.symbols, SPECIALS[EOS]]
        pairs = zip(names, found.symbol_scores, strict=False)
        return {"symbols": [[name, round(score, 6)] for name, score in pairs]}


def _score(score: float | None) -> dict[str, float]:
    """Rounded: the digits behind depend on what a text is answered together with."""
    return {} if score is None else {"score": round(score, 6)}
