"""Output formats of predictions: lines, n-best lists, JSON objects."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from regard.core.errors import UserError
from regard.tasks.values import BRIEF, InputItem, Prediction

SourceTokens = Callable[[Any], list[str]]
Alternative = tuple[str, float, Prediction]  # next token, its probability, best output with it


@dataclass(frozen=True)
class OutputFormat:
    """The output format of predictions.

    nbest: number of outputs per source. json_lines: write one JSON object per source.
    token_scores: add output tokens and their log probabilities to the JSON. alignment: add the
    attention of each output token to the source tokens to the JSON. alternatives: number of next
    tokens to list after the prefix, instead of predictions.
    """

    nbest: int = 1
    json_lines: bool = False
    token_scores: bool = False
    alignment: bool = False
    alternatives: int = 0

    def check(self) -> None:
        """Raise UserError if options cannot be combined."""
        if (self.token_scores or self.alignment) and not self.json_lines:
            raise UserError("--token-scores, --alignments: require --json")
        if self.alternatives and (self.nbest > 1 or self.alignment):
            raise UserError("--alternatives: cannot be combined with --nbest or --alignments")

    def line(self, item: InputItem, found: Prediction, source_tokens: SourceTokens) -> str:
        """Format a prediction, line ends included.

        An n-best list has one line per output: score, tab, text. Outputs without a score have only
        the text. The name of the source, if it has one, and a tab come first. Line ends inside a
        text are escaped, except in JSON. source_tokens: returns the tokens of a source, for
        alignments.
        """
        if self.json_lines:
            blank = item.render is not None and not item.source
            return "" if blank else _json(self._record(item, found, source_tokens))
        if item.render is not None:
            return item.render(found)
        name = f"{one_line(item.name)}\t" if item.name else ""
        if self.nbest == 1:
            return f"{name}{one_line(found.text)}\n"
        scores = ["" if one.score is None else f"{one.score:.4f}\t" for one in found.nbest]
        texts = [one_line(one.text) for one in found.nbest]
        return "".join(f"{name}{s}{text}\n" for s, text in zip(scores, texts, strict=True))

    def _record(
        self, item: InputItem, found: Prediction, source_tokens: SourceTokens
    ) -> dict[str, Any]:
        """Return the JSON object for a source and its prediction."""
        tagged = isinstance(item.source, tuple)
        source = item.source if tagged or isinstance(item.source, str) else item.text
        brief = self._brief_fields()
        nbest = ("nbest",) if self.nbest > 1 else ()
        confidences = ("confidences",) if tagged else ()
        rest = ("probabilities", "confidence", *confidences, "unknown_tokens", "folded")
        fields = ("prediction", *brief[1:], *nbest, *rest)
        record = {"source": item.name or source} | found.as_dict(
            fields, brief, None, eos=not tagged
        )
        if self.alignment:
            record["source_tokens"] = source_tokens(source)
            record |= found.as_dict(("alignment",), digits=4)
        return record

    def format_alternatives(self, source: str, prefix: str, found: list[Alternative]) -> str:
        """Format the next tokens after a prefix and the best output with each, as lines or JSON."""
        if not self.json_lines:
            rows = [(p, one_line(token), one_line(best.text)) for token, p, best in found]
            return "".join(f"{p:.4f}\t{token}\t{text}\n" for p, token, text in rows)
        records = [
            {"token": token, "probability": round(p, 6)}
            | best.as_dict(self._brief_fields(), eos=True)
            for token, p, best in found
        ]
        return _json({"source": source, "prefix": prefix, "alternatives": records})

    def _brief_fields(self) -> tuple[str, ...]:
        """Return the JSON fields of each prediction in an n-best list."""
        scored = self.token_scores or self.alignment
        return (*BRIEF, "tokens", "token_logprobs") if scored else BRIEF


def one_line(text: str) -> str:
    r"""Return a text with its line ends escaped as \n and \r, so that it fits on one line."""
    return text.replace("\r", "\\r").replace("\n", "\\n")


def _json(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"
