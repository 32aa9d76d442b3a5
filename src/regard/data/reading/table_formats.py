"""Tables of pairs in files: TSV and CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from typing_extensions import Self

from regard.data.reading.lines import MAX_LINE, split_line_ends
from regard.data.reading.pair_format import Problems, Row
from regard.data.reading.pair_tables import TablePairs, TableRows

QUOTES = "(a quotation mark not closed or not doubled?)"


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
