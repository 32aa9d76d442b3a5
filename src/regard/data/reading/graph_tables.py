"""Tables of nodes and of edges, as rows of cells: TSV, CSV or JSON lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from regard.core.errors import UserError
from regard.data.reading.columns import find_columns, is_name, number
from regard.data.reading.json_lines import JsonPairs, check_not_array, objects_of
from regard.data.reading.lines import (
    note_blank,
    note_crlf,
    raise_bad_lines,
    read_text,
    show_path,
    split_line_ends,
)
from regard.data.reading.pair_format import Problems, Row
from regard.data.reading.pair_reader import recognize
from regard.data.reading.pair_tables import TablePairs

NODE_NAMES = ("id", "node", "name")
END_NAMES = (("source", "src", "from", "u", "head"), ("target", "tgt", "dst", "to", "v", "tail"))
RELATION_NAMES = ("relation", "type", "kind", "label", "rel")
HEADERS = {  # first cells that are names, by side
    "id": (*NODE_NAMES, "node_id"),
    "target": ("label", "labels", "class", "target"),
    "split": ("split", "part", "fold", "set", "subset"),
    "graph": ("graph", "graph_id"),
}


@dataclass
class Table:
    """The rows of a table. first: the cells of the first row, or the keys of JSON objects.

    keyed: whether the table has names of columns for sure, as JSON lines do.
    """

    path: str
    first: Row
    rows: list[Row]
    keyed: bool
    notes: list[str]

    def column(self, side: str, column: str) -> tuple[tuple[int, ...], bool]:
        """Return the indices of a column that the user passed, and whether it is a name."""
        found, named = find_columns(self.path, self.first[0], side, column, self.first[1])
        if max(found) >= len(self.first[1]):
            raise UserError(
                f"{self.path} line {self.first[0]}: --{side}-column: no column {max(found) + 1}: "
                f"found {len(self.first[1])} columns"
            )
        return found, named

    def has(self, column: str | None) -> bool:
        """Return whether there is a column with this name, or this number from 1."""
        cells = [cell.strip() for cell in self.first[1]]
        if column is None or not column.isdigit():
            return column in cells
        return 1 <= int(column) <= len(cells)

    def known(self, names: tuple[str, ...]) -> int | None:
        """Return the index of the column with one of these names, if the first row names it."""
        cells = [cell.strip().lower() for cell in self.first[1]]
        return next((cells.index(name) for name in names if name in cells), None)

    def body(self, header: bool) -> list[Row]:
        """Return the rows without the header. Raise UserError if some have another length."""
        rows = self.rows[1:] if header and not self.keyed else self.rows
        if header and not self.keyed:
            self.notes.append(f"first line is a header: {', '.join(self.first[1])}")
        if not rows:
            raise UserError(f"{self.path}: no rows, only a header")
        width = len(self.first[1])
        problems = [
            (line, f"expected {width} columns, as in line {self.first[0]}, found {len(cells)}")
            for line, cells in rows
            if len(cells) != width
        ]
        raise_bad_lines(self.path, problems)
        return rows


def read_table(path: str, expected: str) -> Table:
    """Return the rows of a TSV, CSV or JSONL file. expected: its content, if it is empty."""
    text, notes = read_text(path, expected)
    shown = show_path(path)
    kind = recognize(path, text, notes)
    if issubclass(kind, JsonPairs):
        return _json_table(shown, text, notes)
    assert issubclass(kind, TablePairs)
    rows, blank, returns, problems = kind.open(shown, text, notes).rows(text)
    raise_bad_lines(shown, problems)
    notes += [*note_crlf(returns), *note_blank(blank)]
    return Table(shown, rows[0], rows, False, notes)


def _json_table(path: str, text: str, notes: list[str]) -> Table:
    check_not_array(path, text)
    records, problems = objects_of(split_line_ends(text)[0])
    names = list(dict.fromkeys(name for _, record in records for name in record))
    rows: list[Row] = []
    for line, record in records:
        cells = [cell(record.get(name), name, line, problems) for name in names]
        rows.append((line, cells))
    raise_bad_lines(path, problems)
    if not rows:
        raise UserError(f"{path}: no JSON objects")
    return Table(path, (rows[0][0], names), rows, True, notes)


def cell(value: Any, name: str, line: int, problems: Problems) -> str:
    """Return a JSON value as a cell; a list becomes blank-separated numbers."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(number(one) is not None for one in value):
        return " ".join(map(repr, value))
    if isinstance(value, bool) or number(value) is None:
        problems.append((line, f"'{name}': expected a text, a number or a list of numbers"))
        return ""
    return repr(value)


def is_header(table: Table, columns: dict[str, tuple[int, ...]]) -> bool:
    """Return whether the first row names columns.

    A cell is the usual name of its column and occurs only once in it; or cells of features and ids
    are no numbers, but those below them are. columns: indices by side.
    """
    if table.keyed:
        return True
    if len(table.rows) < 2:
        return False
    return _has_names(table, columns) or _has_text_above_numbers(
        table, [*columns["id"], *columns["source"]]
    )


def _has_names(table: Table, columns: dict[str, tuple[int, ...]]) -> bool:
    """Return whether a cell of the first row is the usual name of its column."""
    for side, usual in HEADERS.items():
        for at in columns.get(side, ()):
            name = table.rows[0][1][at].strip()
            others = (cells[at].strip() for _, cells in table.rows[1:] if at < len(cells))
            if name.lower() in usual and name not in others:
                return True
    return False


def _has_text_above_numbers(table: Table, columns: list[int]) -> bool:
    """Return whether cells of the first row are no numbers, but those of the second are."""
    pairs = [
        [cells[at].split()[:1] for cells in (table.rows[0][1], table.rows[1][1])]
        for at in columns
        if at < len(table.rows[1][1])
    ]
    return any(
        first and second and is_name(first[0]) and number(second[0]) is not None
        for first, second in pairs
    )
