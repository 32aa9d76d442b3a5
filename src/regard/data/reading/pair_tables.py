"""The base class of tables of pairs. A row is a line number and a list of cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from typing_extensions import Self

from regard.core.errors import UserError
from regard.data.reading.columns import CHOOSE, Columns, choose_columns, is_name, number
from regard.data.reading.lines import (
    check_line_ends,
    note_blank,
    note_crlf,
    raise_bad_lines,
)
from regard.data.reading.pair_format import (
    Names,
    PairFormat,
    ParsedBlock,
    Problems,
    Row,
    check_sides,
)

FIRST_TWO = Columns((0,), (1,), False, False)


class TableRows(NamedTuple):
    """The rows of a block, and what else the block contains.

    blank: number of blank lines. returns: number of CR LF line ends. problems: bad lines.
    """

    rows: list[Row]
    blank: int
    returns: int
    problems: Problems


@dataclass(frozen=True)
class TablePairs(PairFormat):
    """Base class for tables of pairs.

    separator: name of the column separator in messages. comma: the separator itself in CSV.
    columns: source and target columns. header: line number of the header, 0 without one.
    expected: number of cells per row; None: skip rows with too few cells.
    """

    separator: ClassVar[str]

    comma: str = "\t"
    columns: Columns = FIRST_TWO
    header: int = 0
    expected: int | None = None

    def rows(self, text: str, line: int = 1) -> TableRows:
        """Return the rows of a block. line: first line number."""
        raise NotImplementedError

    def choose(self, path: str, first: Row, names: Names, notes: list[str]) -> Self:
        columns = choose_columns(path, *first, *names, notes)
        return replace(self, columns=columns, header=first[0] if columns.header else 0)

    def peek(self, text: str, first: Row) -> tuple[str, list[str]]:
        if len(self.columns.source) > 1:
            return "", []
        (column,), cells = self.columns.source, first[1]
        name = cells[column].strip() if self.header and column < len(cells) else ""
        rows = [row for line, row in self.rows(text).rows if line != self.header]
        return name, [row[column] for row in rows if column < len(row)]

    def parse(self, texts: Sequence[str], line: int) -> ParsedBlock:
        rows, blank, returns, problems = self.rows(texts[0], line)
        block = self.to_pairs(rows)
        block.blank, block.returns = blank, (returns,)
        block.problems = problems + block.problems
        return block

    def to_pairs(self, rows: list[Row]) -> ParsedBlock:
        """Return the pairs of these rows, without the header."""
        widths = Counter([len(cells) for _, cells in rows])
        if rows and rows[0][0] <= self.header:
            rows = [row for row in rows if row[0] != self.header]
        problems: Problems = []
        if not all(map(self._fits, widths)):
            if self.expected is not None:
                problems = [self._problem(row) for row in rows if not self._fits(len(row[1]))]
            rows = [row for row in rows if self._fits(len(row[1]))]
        source, target = (self._side(rows, p) for p in (self.columns.source, self.columns.target))
        return ParsedBlock(
            source, target, [line for line, _ in rows], widths=widths, problems=problems
        )

    def _fits(self, width: int) -> bool:
        if self.expected is None or self.columns.chosen:
            return width >= self.columns.needed
        return width == self.expected

    def _problem(self, row: Row) -> tuple[int, str]:
        more = " or more" * self.columns.chosen
        return row[0], f"expected {self.expected} columns{more}, found {len(row[1])}"

    def _side(self, rows: list[Row], columns: Sequence[int]) -> list[str]:
        if len(columns) == 1:
            (column,) = columns
            return [cells[column] for _, cells in rows]
        return [" ".join([cells[column] for column in columns]) for _, cells in rows]

    def strict(self, path: str, first: Row, widths: Counter[int], notes: list[str]) -> Self | None:
        self._check_single_column(path, first, widths)
        counts = Counter({width: count for width, count in widths.items() if width > 1})
        columns = self.columns
        expected = columns.needed if columns.chosen else counts.most_common(1)[0][0]
        if not columns.chosen and expected > 2:
            notes.append(f"{expected} columns: the first two are source and target; {CHOOSE}")
        strict = replace(self, expected=expected)
        return None if all(map(strict._fits, widths)) else strict

    def _check_single_column(self, path: str, first: Row, widths: Counter[int]) -> None:
        """Raise UserError if a table with this first row has only one column."""
        if max(widths) > 1:
            return
        raise UserError(
            f"{path} line {first[0]}: expected 2 columns, source and target, separated by "
            f"{self.separator}; found 1 in all {widths.total():,} lines",
            help=f"{self._hint(first[1])}use --source A --target B for two files, "
            "--task language-model for plain text",
        )

    def _hint(self, cells: list[str]) -> str:
        return ""

    @classmethod
    def read_rows(cls, path: str, text: str, notes: list[str]) -> list[Row]:
        if cls.by_lines:
            check_line_ends(path, text.count("\n"), text.count("\r"))
        table = cls.open(path, text, notes)
        rows, blank, returns, problems = table.rows(text)
        raise_bad_lines(path, problems)
        notes += [*note_crlf(returns), *note_blank(blank)]
        table._check_single_column(path, rows[0], Counter(len(cells) for _, cells in rows))
        return rows

    @classmethod
    def values(
        cls, path: str, text: str, names: Names, notes: list[str], problems: Problems, apart: bool
    ) -> tuple[ParsedBlock, list[str]]:
        """Return texts with labels or numbers, and the names of the targets.

        If `apart` is true, a first row of names above a row with numbers is a header.
        """
        rows = cls.read_rows(path, text, notes)
        line, first = rows[0]
        table = cls().choose(path, rows[0], names, notes)
        columns = table.columns.target
        if apart and not table.header and len(rows) > 1:
            above, below = ([c[at] for at in columns if at < len(c)] for _, c in rows[:2])
            if all(map(is_name, above)) and any(number(cell) is not None for cell in below):
                table = replace(table, header=line)
                notes.append(f"first line is a header: {', '.join(name.strip() for name in first)}")
        widths = Counter(len(cells) for _, cells in rows)
        strict = table.strict(path, rows[0], widths, notes)
        block = (strict or table).to_pairs(rows)
        raise_bad_lines(path, block.problems)
        if not apart:
            sides = (block.sources, block.targets)
            check_sides(path, len(block.sources), [any(map(str.strip, side)) for side in sides])
        else:
            block.targets = [
                [c[at] for at in columns] for number, c in rows if number != table.header
            ]
        known = first if table.header else []
        return block, [known[at].strip() if at < len(known) else str(at + 1) for at in columns]
