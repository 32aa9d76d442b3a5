"""What is odd about answers, counted as they come."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from regard.core import parallel
from regard.core.errors import info
from regard.tasks.task import Prediction

SHOWN, KEPT = 10, 10_000  # different tokens


@dataclass
class Oddities:
    """Tokens that training never saw, and answers that were cut; said at the end."""

    unknown: Counter[str] = field(default_factory=Counter)  # of at most KEPT different ones
    count: int = 0
    cut: int = 0

    def add(self, found: Prediction) -> None:
        """Counts one answer."""
        self.cut += found.truncated
        self.add_unknown(found.unknown_tokens)

    def add_unknown(self, tokens: tuple[str, ...]) -> None:
        """Counts tokens that training never saw."""
        self.count += len(tokens)
        for token in tokens:
            if len(self.unknown) < KEPT or token in self.unknown:
                self.unknown[token] += 1

    def record(self) -> dict[str, Any]:
        """What the next process must know to go on counting, ready for JSON."""
        often = dict(self.unknown.most_common(SHOWN))
        return {"tokens": often, "unknown": self.count, "cut": self.cut}

    def go_on(self, record: dict[str, Any]) -> None:
        """Adds what another process counted."""
        self.unknown.update(record["tokens"])
        self.count += record["unknown"]
        self.cut += record["cut"]

    def of_all(self) -> "Oddities":
        """Those of all processes together."""
        whole = Oddities()
        for record in parallel.gather([self.record()]):
            whole.go_on(record)
        return whole

    def say(self) -> None:
        """A line for each thing that was odd."""
        if self.count:
            shown = " ".join(f"{token!r}" for token, _ in self.unknown.most_common(SHOWN))
            tokens = "1 token" if self.count == 1 else f"{self.count:,} tokens"
            was = "was" if self.count == 1 else "were"
            info(f"{tokens} that training never saw {was} read as unknown: {shown}")
        if self.cut == 1:
            info("1 answer came to its limit of length and was ended there")
        elif self.cut:
            info(f"{self.cut:,} answers came to their limit of length and were ended there")
