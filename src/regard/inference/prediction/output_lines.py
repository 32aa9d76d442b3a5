"""Answers as they are printed: lines, n-best lists, JSON objects."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from regard.core.errors import UserError
from regard.tasks.values import BRIEF, InputItem, Prediction

Names = Callable[[Any], list[str]]
Alternative = tuple[str, float, Prediction]  # token, its probability, the best answer with it


@dataclass(frozen=True)
class Form:
    """How answers are written. In JSON: tokens, each with its score; alignment, from these to
    the tokens of the source; alternatives, so many at the place behind the prefix."""

    nbest: int = 1
    json_lines: bool = False
    tokens: bool = False
    alignment: bool = False
    alternatives: int = 0

    def check(self) -> None:
        """Refuses what is only written in JSON."""
        if (self.tokens or self.alignment) and not self.json_lines:
            raise UserError("--tokens, --alignments: only JSON has room for them; add --json")
        if self.alternatives and (self.nbest > 1 or self.alignment):
            raise UserError(
                "--alternatives: are answers of their own; without --nbest, --alignments"
            )

    def line(self, item: InputItem, found: Prediction, names: Names) -> str:
        """Return a prediction as it is printed, line ends and all. names: the tokens of a source.

        With n-best each of them, after its score, if it has one, and a tab.
        """
        if self.json_lines:
            between = item.render is not None and not item.source  # a blank line
            return "" if between else _json(self._record(item.source, found, names))
        if item.render is not None:
            return item.render(found)
        if self.nbest == 1:
            return f"{found.text}\n"
        others = found.alternatives
        scores = ["" if other.score is None else f"{other.score:.4f}\t" for other in others]
        return "".join(f"{s}{other.text}\n" for s, other in zip(scores, others, strict=True))

    def _record(self, source: Any, found: Prediction, names: Names) -> dict[str, Any]:
        """Return the JSON object for a source."""
        brief = self._brief()
        nbest = ("nbest",) if self.nbest > 1 else ()
        tagged = ("confidences",) if isinstance(source, tuple) else ()
        rest = ("probabilities", "confidence", *tagged, "unknown")
        parts = ("prediction", *brief[1:], *nbest, *rest)
        record = {"source": source} | found.as_dict(parts, brief, None, pairs=True)
        if self.alignment:
            record["source_tokens"] = names(source)
            record |= found.as_dict(("alignment",), digits=4)
        return record

    def options(self, source: str, prefix: str, found: list[Alternative]) -> str:
        """How an answer may go on behind a prefix: lines, or one JSON object."""
        if not self.json_lines:
            return "".join(f"{p:.4f}\t{token}\t{best.text}\n" for token, p, best in found)
        rows = [
            {"token": token, "probability": round(p, 6)} | best.as_dict(self._brief(), pairs=True)
            for token, p, best in found
        ]
        return _json({"source": source, "prefix": prefix, "alternatives": rows})

    def _brief(self) -> tuple[str, ...]:
        """The parts of a prediction that are one of several."""
        return (*BRIEF, "tokens") if self.tokens or self.alignment else BRIEF


def _json(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"
