"""Tables with a column of files as the input of a prediction: targets are not read."""

from __future__ import annotations

from pathlib import Path

from regard.core.errors import UserError
from regard.data.reading.lines import raise_bad_lines, read_text
from regard.data.reading.media import MediaFile, Medium, show_names
from regard.data.reading.media_table import check_exist, only_column, resolve
from regard.data.reading.pair_format import Row
from regard.data.reading.pair_reader import BY_SUFFIX, recognize
from regard.data.reading.pair_tables import TablePairs


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
    raise_bad_lines(path, block.problems)
    files = {
        resolve(path, name): MediaFile(resolve(path, name), f"{path} line {line}")
        for line, name in reversed(list(zip(block.lines, block.sources, strict=True)))
        if name.strip()
    }
    check_exist(path, files, block.sources)
    return list(zip(block.lines, block.sources, strict=True))


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
