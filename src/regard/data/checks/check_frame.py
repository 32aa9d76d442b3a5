"""The base class of data checks, which returns results as a dict or as a text report."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

MAX_SHOWN = 12  # labels named in a warning
MIN_EXAMPLES = 5  # a label with fewer examples can hardly be learned
MAX_LISTED = 40  # labels listed in the report


@dataclass
class MediaStats(ABC):
    """Base class for statistics of sources in files, such as images."""

    @abstractmethod
    def rows(self) -> list[tuple[str, str]]:
        """Return names and values for the full report."""

    @abstractmethod
    def warnings(self) -> list[str]:
        """Return messages for the user, which include copies of train in dev."""


@dataclass
class DataCheck(ABC):
    """Base class for the result of a data check. warnings: messages for the user.

    media: statistics of sources in files, such as images; None for other sources. pictures: of
    some examples of each label, as data URLs.
    """

    warnings: list[str] = field(default_factory=list, kw_only=True)
    media: MediaStats | None = field(default=None, kw_only=True)
    pictures: dict[str, list[str]] = field(default_factory=dict, kw_only=True)

    @abstractmethod
    def summary(self) -> list[str]:
        """Return a few lines with the sizes of the data."""

    @abstractmethod
    def sections(self) -> Sequence[list[str]]:
        """Return the sections of the full report, each a list of lines."""

    def as_dict(self) -> dict[str, object]:
        """Return all results for JSON; warnings come last."""
        found = asdict(self)
        media = found.pop("media")
        found |= {} if media is None else {"media": media}
        if not found["pictures"]:
            del found["pictures"]
        found["warnings"] = found.pop("warnings")
        return found

    def short(self) -> list[str]:
        """Return the lines that `train` prints: the summary and all warnings."""
        return [*self.summary(), *(f"warning: {warning}" for warning in self.warnings)]

    def lines(self) -> list[str]:
        """Return the full report as plain text, warnings first."""
        lines = [f"warning: {warning}" for warning in self.warnings] or ["no issues found"]
        for section in self.sections():
            lines += ["", *section]
        return lines


def table(rows: list[tuple[str, str]], width: int = 25) -> list[str]:
    """Return lines with a name, padded to `width`, and a value."""
    return [f"{name:<{width}}{value}" for name, value in rows]


def length_rows(lengths: dict[int, int]) -> list[tuple[str, str]]:
    """Return length percentiles as (name, value) rows for `table`."""
    names = ("length p50", "length p90", "length p99", "length max")
    return [(name, f"{n:,}") for name, n in zip(names, lengths.values(), strict=True)]


def label_warnings(name: str, labels: dict[str, int], unseen: dict[str, int]) -> list[str]:
    """Return warnings about labels that occur only in dev (`unseen`) or are rare in train.

    name: what a label is called, "label" or "tag". labels, unseen: counts by label.
    """
    warnings = []
    if unseen:
        first = ", ".join(
            f"{label} ({count:,})" for label, count in list(unseen.items())[:MAX_SHOWN]
        )
        warnings.append(f"dev {name}s that never occur in train (always wrong): {first}")
    rare = [label for label, count in labels.items() if count < MIN_EXAMPLES]
    if rare:
        some = ", ".join(rare[:MAX_SHOWN]) + (" ..." if len(rare) > MAX_SHOWN else "")
        warnings.append(f"{name}s with fewer than {MIN_EXAMPLES} examples: {some}")
    return warnings


def label_lines(name: str, labels: dict[str, int]) -> list[str]:
    """Return a header, and one line with count, percentage and bar per label."""
    total = max(1, sum(labels.values()))
    most = max(labels.values(), default=1)
    width = min(24, max((len(label) for label in labels), default=1))
    lines = [f"{name:<{width}}  {'count':>10}  percent"]
    for label, count in list(labels.items())[:MAX_LISTED]:
        bar = "#" * max(1, round(30 * count / most)) if count else ""
        lines.append(f"{label[:width]:<{width}}  {count:>10,}  {count / total:6.1%}  {bar}")
    if len(labels) > MAX_LISTED:
        lines.append(f"and {len(labels) - MAX_LISTED:,} more")
    return lines
