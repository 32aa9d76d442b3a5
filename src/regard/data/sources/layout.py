"""How a block of lines becomes pairs: a table, JSON lines, or two files line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from regard.data.reading.columns import Columns, Row, csv_rows, is_blank_line
from regard.data.reading.json_lines import objects_of, values_of
from regard.data.reading.lines import cut_lines


@dataclass
class Cut:
    """The pairs of a block: sources, targets and the lines they began in; and what was odd."""

    sources: list[str]
    targets: list[str]
    lines: Sequence[int]
    blank: int = 0
    returns: tuple[int, ...] = ()  # lines that ended in CR LF, of each file
    widths: Counter[int] = field(default_factory=Counter)  # numbers of columns
    problems: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Aligned:
    """Two files, each line its own side."""

    def cut(self, texts: Sequence[str], line: int) -> Cut:
        """The pairs of two blocks that begin in this line."""
        (left, first), (right, second) = map(cut_lines, texts)
        return Cut(left, right, range(line, line + len(left)), returns=(first, second))


@dataclass(frozen=True)
class TableLayout:
    """Rows of cells. expected: how many cells a row must have, where that is known."""

    kind: str
    comma: str
    columns: Columns
    header: int = 0  # its line
    expected: int | None = None

    def cut(self, texts: Sequence[str], line: int) -> Cut:
        """The pairs of a block that begins in this line."""
        rows, blank, returns, problems = table_rows(self.kind, self.comma, texts[0], line)
        widths = Counter([len(cells) for _, cells in rows])
        if line <= self.header:
            rows = [row for row in rows if row[0] != self.header]
        if not all(map(self._fits, widths)):
            if self.expected is not None:
                problems += [self._problem(row) for row in rows if not self._fits(len(row[1]))]
            rows = [row for row in rows if self._fits(len(row[1]))]
        source, target = (self._side(rows, p) for p in (self.columns.source, self.columns.target))
        lines = [number for number, _ in rows]
        return Cut(source, target, lines, blank, (returns,), widths, problems)

    def _fits(self, width: int) -> bool:
        if self.expected is None or self.columns.chosen:
            return width >= self.columns.needed
        return width == self.expected

    def _problem(self, row: Row) -> tuple[int, str]:
        more = " or more" * self.columns.chosen
        return row[0], f"{self.expected} columns{more} expected, {len(row[1])} found"

    def _side(self, rows: list[Row], places: tuple[int, ...]) -> list[str]:
        if len(places) == 1:
            (place,) = places
            return [cells[place] for _, cells in rows]
        return [" ".join([cells[place] for place in places]) for _, cells in rows]


@dataclass(frozen=True)
class Objects:
    """JSON lines, with the keys of source and target."""

    source: tuple[str, ...]
    target: tuple[str, ...]

    def cut(self, texts: Sequence[str], line: int) -> Cut:
        """The pairs of a block that begins in this line."""
        lines, returns = cut_lines(texts[0])
        records, problems = objects_of(lines, line)
        blank = len(lines) - len(records) - len(problems)
        found, odd = values_of(records, self.source, self.target)
        sources = [source for source, _, _ in found]
        targets = [target for _, target, _ in found]
        numbers = [number for _, _, number in found]
        return Cut(sources, targets, numbers, blank, (returns,), problems=sorted(problems + odd))


Layout = Aligned | TableLayout | Objects


def table_rows(
    kind: str, comma: str, text: str, line: int
) -> tuple[list[Row], int, int, list[tuple[int, str]]]:
    """The rows of a block that begins in this line, blank lines, CR LF ends, and bad lines."""
    if kind == "CSV":
        found, problems = csv_rows(text, comma, line)
        rows = [row for row in found if row[1]]
        return rows, len(found) - len(rows), 0, problems
    lines, returns = cut_lines(text)
    cells = [one.split("\t") for one in lines]
    numbered = list(zip(range(line, line + len(cells)), cells, strict=True))
    if all(map(str.strip, lines)):
        return numbered, 0, returns, []
    rows = [row for row in numbered if not is_blank_line(row[1])]
    return rows, len(numbered) - len(rows), returns, []
