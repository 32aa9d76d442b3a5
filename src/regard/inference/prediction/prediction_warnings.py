"""Warnings about unknown tokens, folded characters and truncated predictions."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from regard.core.errors import info, warn
from regard.tasks.values import Prediction

MAX_SHOWN, MAX_KEPT = 10, 10_000  # distinct unknown tokens that are printed, and counted


@dataclass
class PredictionWarnings:
    """Counts of unknown tokens, folded characters and truncated predictions, printed at the end.

    folded: the number of sources with each change, such as `A → a`. converted: the number of
    sources, such as images, with each conversion.
    """

    unknown_tokens: Counter[str] = field(default_factory=Counter)  # at most MAX_KEPT tokens
    num_unknown: int = 0
    num_truncated: int = 0
    folded: Counter[str] = field(default_factory=Counter)
    converted: Counter[str] = field(default_factory=Counter)

    def add(self, prediction: Prediction) -> None:
        """Count the unknown tokens and the truncation of one prediction."""
        self.num_truncated += prediction.truncated
        self.folded.update(prediction.folded)
        self.add_unknown(prediction.unknown_tokens)

    def add_source(self, source: Any) -> None:
        """Count what was converted when a source was read."""
        self.converted.update(getattr(source, "changes", ()))

    def add_unknown(self, tokens: tuple[str, ...]) -> None:
        """Count unknown tokens."""
        self.num_unknown += len(tokens)
        for token in tokens:
            if len(self.unknown_tokens) < MAX_KEPT or token in self.unknown_tokens:
                self.unknown_tokens[token] += 1

    def record(self) -> dict[str, Any]:
        """Return the counts for `restore`, ready for JSON."""
        frequent = dict(self.unknown_tokens.most_common(MAX_SHOWN))
        counts = {"unknown": self.num_unknown, "truncated": self.num_truncated}
        changes = {"folded": dict(self.folded), "converted": dict(self.converted)}
        return {"tokens": frequent, **changes, **counts}

    def restore(self, record: dict[str, Any]) -> None:
        """Add the counts that another process recorded."""
        self.unknown_tokens.update(record["tokens"])
        self.folded.update(record.get("folded", {}))
        self.converted.update(record.get("converted", {}))
        self.num_unknown += record["unknown"]
        self.num_truncated += record["truncated"]

    def across_processes(self) -> "PredictionWarnings":
        """Return the sum of the counts over all processes."""
        from regard.core import parallel  # imports torch

        total = PredictionWarnings()
        for record in parallel.all_gather([self.record()]):
            total.restore(record)
        return total

    def print(self) -> None:
        """Print one line per kind of warning."""
        if self.num_unknown:
            tokens = [repr(token) for token, _ in self.unknown_tokens.most_common(MAX_SHOWN)]
            count = _count(self.num_unknown, "unknown token")
            warn(f"{count} in the input (read as <unk>): {' '.join(tokens)}")
        if self.folded:
            changes = [change for change, _ in self.folded.most_common(MAX_SHOWN)]
            more = ", ..." if len(self.folded) > MAX_SHOWN else ""
            info(
                "characters that the training data does not have were read as: "
                f"{', '.join(changes)}{more}"
            )
        for change, times in self.converted.items():
            info(f"{change}: {times:,}")
        if self.num_truncated:
            warn(f"{_count(self.num_truncated, 'prediction')} truncated at the maximum length")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
