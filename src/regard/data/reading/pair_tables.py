"""Tables of pairs: TSV and CSV. A row is a line number and a list of cells."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from typing_extensions import Self

from regard.core.errors import UserError
from regard.data.reading.columns import CHOOSE, Columns, choose_columns, is_name, number
from regard.data.reading.lines import (
    MAX_LINE,
    check_line_ends,
    note_blank,
    note_crlf,
    raise_bad_lines,
    split_line_ends,
)
from regard.data.reading.pair_format import (
    Names,
    PairFormat,
    ParsedBlock,
    Problems,
    Row,
    check_sides,
)

QUOTES = "(a quotation mark not closed or not doubled?)"
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


class TsvPairs(TablePairs):
    """A table with tab-separated cells."""

    name = "TSV"
    suffixes = (".tsv", ".txt")
    separator = "tab"

    def first(self, text: str, line: int) -> Row | None:
        lines = enumerate(text.split("\n"), line)
        rows = ((number, one.removesuffix("\r").split("\t")) for number, one in lines)
        return next((row for row in rows if not _is_blank(row[1])), None)

    def rows(self, text: str, line: int = 1) -> TableRows:
        lines, returns = split_line_ends(text)
        cells = [one.split("\t") for one in lines]
        numbered = list(zip(range(line, line + len(cells)), cells, strict=True))
        if all(map(str.strip, lines)):
            return TableRows(numbered, 0, returns, [])
        rows = [row for row in numbered if not _is_blank(row[1])]
        return TableRows(rows, len(numbered) - len(rows), returns, [])

    def _hint(self, cells: list[str]) -> str:
        return "if commas separate the columns, name the file .csv; " * ("," in cells[0])


class CsvPairs(TablePairs):
    """A table with cells separated by commas, semicolons or tabs; cells may be quoted."""

    name = "CSV"
    suffixes = (".csv",)
    separator = "comma"
    quote = '"'
    by_lines = False

    @classmethod
    def open(cls, path: str, text: str, notes: list[str]) -> Self:
        first = text.split("\n", 1)[0]
        comma = next((mark for mark in ",;\t" if mark in first), ",")
        if comma != ",":
            notes.append(f"columns separated by {'tabs' if comma != ';' else 'semicolons'}")
        if first.endswith("\r"):
            notes.append("Windows line ends (CR LF) removed")
        return cls(comma=comma)

    def first(self, text: str, line: int) -> Row | None:
        return next((row for row in self._read(text, line, []) if row[1]), None)

    def rows(self, text: str, line: int = 1) -> TableRows:
        problems: Problems = []
        found = list(self._read(text, line, problems))
        rows = [row for row in found if row[1]]
        return TableRows(rows, len(found) - len(rows), 0, problems)

    def _read(self, text: str, line: int, problems: Problems) -> Iterator[Row]:
        """Yield the rows, with no cells for a blank line; append bad lines to problems."""
        csv.field_size_limit(max(MAX_LINE, csv.field_size_limit()))  # of all readers in Python
        lines = text.removesuffix("\n").split("\n")
        reader = csv.reader((one + "\n" for one in lines), delimiter=self.comma, strict=True)
        while True:
            start = reader.line_num + line
            try:
                yield start, next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                too_long = "field larger" in str(error)
                found = f"a cell has more than {MAX_LINE:,} characters" if too_long else error
                problems.append((start, f"invalid CSV: {found} {QUOTES}"))
                if too_long:
                    return


def _is_blank(cells: list[str]) -> bool:
    """Return whether the cells of a TSV line are a single cell of whitespace."""
    return len(cells) == 1 and not cells[0].strip()
