"""Tables with a column of files as the input of a prediction: targets are not read."""

from __future__ import annotations

import os
from pathlib import Path

from regard.core.errors import UserError
from regard.data.reading.lines import raise_bad_lines, read_lines, read_text
from regard.data.reading.media import MediaFile, Medium, raise_errors, show_names
from regard.data.reading.media_table import check_exist, only_column, resolve
from regard.data.reading.pair_format import Row
from regard.data.reading.pair_reader import BY_SUFFIX, recognize
from regard.data.reading.pair_tables import TablePairs

EMPTY = "expected the name of a file, found nothing"


def table_rows(path: str, column: str | None, medium: Medium) -> list[tuple[int, str]] | None:
    """Return the line and the file name of each row of a table; None for a list of files.

    column: of the user or of the training data; None: the one with a known header, such as `file`.
    Raise UserError for missing files. Paths are relative to the folder of the table.
    """
    suffix = Path(path.removesuffix(".gz")).suffix.lower()
    if path == "-" or suffix == ".txt" or suffix not in BY_SUFFIX or not Path(path).is_file():
        return None
    text, notes = read_text(path)
    layout = recognize(path, text, notes).open(path, text, notes)
    first = layout.first(text, 1)
    if first is None or (isinstance(layout, TablePairs) and _is_list(first, medium)):
        return None
    layout = only_column(layout, path, first, column or _find(path, first, medium), medium)
    block = layout.parse([text], 1)
    rows = list(zip(block.lines, block.sources, strict=True))
    empty = [(line, EMPTY) for line, name in rows if not name.strip()]
    help = "remove the line, or add the name" if empty else ""
    raise_bad_lines(path, sorted([*block.problems, *empty]), help)
    files = {
        resolve(path, name): MediaFile(resolve(path, name), f"{path} line {line}")
        for line, name in reversed(rows)
    }
    check_exist(path, files, block.sources)
    return rows


def list_rows(path: str) -> list[tuple[int, str]] | None:
    """Return the line and the file name of each line of a list of files; None if it is no file.

    Raise one UserError for all missing files. Paths are relative to the folder of the list.
    """
    if path == "-" or not os.path.isfile(path):  # a pipe is read line by line
        return None
    rows = list(enumerate(read_lines(path), 1))
    missing = [(n, name) for n, name in rows if not os.path.isfile(resolve(path, name))]
    help = f"paths are relative to the folder of the list, {Path(path).parent.resolve()}"
    if moved := [name.strip() for _, name in missing if os.path.isfile(name.strip())]:
        help += (
            f"; {moved[0]} exists relative to the current folder: move the list there, or pass it "
            "as --input -"
        )
    raise_errors(
        [UserError(f"{path} line {n}: {_missing(path, name)}", help=help) for n, name in missing],
        f"of {len(rows):,} lines without a file",
    )
    return rows


def _missing(path: str, name: str) -> str:
    """Return the message for a line of a list that names no file."""
    if not name.strip():
        return EMPTY
    found = resolve(path, name)
    return (
        f"{found}: expected a file, found a folder" if found.is_dir() else f"{found}: no such file"
    )


def _is_list(first: Row, medium: Medium) -> bool:
    """Return whether a table with this first row is a list of files: one column, no header."""
    return len(first[1]) == 1 and not medium.names(first[1][0].strip())


def _find(path: str, first: Row, medium: Medium) -> str:
    """Return the column with a known header of a table with this first row."""
    names = [name.strip() for name in first[1]]
    known = [name for name in names if medium.names(name)]
    if known:
        return known[0]
    raise UserError(
        f"{path}: expected a column of {medium.name} files, found {show_names(names)}",
        help="choose it with --source-column",
    )
