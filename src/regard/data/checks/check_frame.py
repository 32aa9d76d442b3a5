"""The frame of every check: what was found as plain data, and as a report in words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

SHOWN = 12  # labels named in a warning
RARE = 5  # a label with fewer examples can hardly be learned
LISTED = 40  # labels with a line of their own


@dataclass
class DataCheck(ABC):
    """What was found; a check says what matters during training and what its sections are."""

    warnings: list[str] = field(default_factory=list, kw_only=True)

    @abstractmethod
    def summary(self) -> list[str]:
        """The sizes, in a few lines."""

    @abstractmethod
    def sections(self) -> Sequence[list[str]]:
        """The parts of the full report, each some lines of plain text."""

    def as_dict(self) -> dict[str, object]:
        """All of it, ready for JSON; warnings come last."""
        found = asdict(self)
        found["warnings"] = found.pop("warnings")
        return found

    def short(self) -> list[str]:
        """What matters during training: the sizes, and every warning."""
        return [*self.summary(), *(f"warning: {warning}" for warning in self.warnings)]

    def lines(self) -> list[str]:
        """The full report as plain text, warnings first."""
        lines = [f"warning: {warning}" for warning in self.warnings] or ["nothing odd was found"]
        for section in self.sections():
            lines += ["", *section]
        return lines


def table(rows: list[tuple[str, str]], width: int = 25) -> list[str]:
    """Names and values in two columns."""
    return [f"{name:<{width}}{value}" for name, value in rows]


def length_rows(lengths: dict[int, int]) -> list[tuple[str, str]]:
    """The lengths, as rows of a table."""
    names = ("length: half up to", "90 % up to", "99 % up to", "longest")
    return [(name, f"{n:,}") for name, n in zip(names, lengths.values(), strict=True)]


def label_warnings(name: str, labels: dict[str, int], strange: dict[str, int]) -> list[str]:
    """What is odd about labels."""
    warnings = []
    if strange:
        first = ", ".join(f"{label} ({count:,})" for label, count in list(strange.items())[:SHOWN])
        warnings.append(f"{name}s in dev that training never saw, always wrong: {first}")
    rare = [label for label, count in labels.items() if count < RARE]
    if rare:
        some = ", ".join(rare[:SHOWN]) + (" ..." if len(rare) > SHOWN else "")
        warnings.append(f"{name}s with fewer than {RARE} examples: {some}")
    return warnings


def label_lines(name: str, labels: dict[str, int]) -> list[str]:
    """A line with a bar for each label, most frequent first."""
    total = max(1, sum(labels.values()))
    most = max(labels.values(), default=1)
    width = min(24, max((len(label) for label in labels), default=1))
    lines = [f"{name:<{width}}  {'count':>10}  share"]
    for label, count in list(labels.items())[:LISTED]:
        bar = "#" * max(1, round(30 * count / most)) if count else ""
        lines.append(f"{label[:width]:<{width}}  {count:>10,}  {count / total:6.1%}  {bar}")
    if len(labels) > LISTED:
        lines.append(f"and {len(labels) - LISTED:,} more")
    return lines
