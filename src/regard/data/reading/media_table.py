"""Tables with a column of files: recognize the column, and read the files.

Paths are relative to the folder of the table.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from regard.core.errors import UserError
from regard.core.formatting import count_noun
from regard.data.reading.columns import CHOOSE, Columns, find_columns, known_header
from regard.data.reading.json_lines import JsonPairs, find_keys
from regard.data.reading.lines import read_lines
from regard.data.reading.media import (
    MediaFile,
    Medium,
    Prepare,
    raise_errors,
    read_files,
    show_names,
)
from regard.data.reading.pair_format import Names, PairFormat, Row
from regard.data.reading.pair_reader import recognize
from regard.data.reading.pair_tables import TablePairs
from regard.data.reading.read import Pair, Pairs

MAX_ROWS = 50  # first rows that decide whether a column has files
MIN_FILES = 0.5  # fraction of these rows


def file_medium(path: str, names: Names, media: Sequence[Medium]) -> Medium | None:
    """Return the medium of the files in the source column of a table; None for other columns.

    A column has files if its header is known and most of its values have a suffix of the medium. If
    the user chose a column with another header, most of its values must also be existing files.
    So texts that look like file names stay texts. names: columns that the user passed.
    """
    header, values = peek_sources(path, names)
    for medium in media:
        like = [value for value in values if medium.has_suffix(value)]
        if not medium.names(header):
            like = [value for value in like if names[0] and resolve(path, value).is_file()]
        if _are_most(len(like), values):
            return medium
    return _medium_by_content(path, header, values, media)


def _medium_by_content(
    path: str, header: str, values: Sequence[str], media: Sequence[Medium]
) -> Medium | None:
    """Return the medium of existing files without a suffix in a column with a known header.

    Raise UserError if they are files of no medium.
    """
    fitting = [medium for medium in media if medium.names(header)]
    found = [str(resolve(path, value)) for value in values] if fitting else []
    files = [file for file in found if os.path.isfile(file)]
    if not fitting or not _are_most(len(files), values):
        return None
    for medium in fitting:
        if _are_most(sum(map(medium.recognizes, files)), files):
            return medium
    kinds = " or ".join(f"{medium.name}s" for medium in fitting)
    raise UserError(
        f"{path}: column {header!r} names files of another kind: expected {kinds}, found "
        f"{show_names(values)}",
        help="convert the files; if the names themselves are the texts, rename the column",
    )


def peek_sources(path: str, names: Names) -> tuple[str, list[str]]:
    """Return the header of the source column, and the sources in the first lines of a table."""
    text, layout, first = _open_start(path)
    if layout is None or first is None:
        return "", []
    try:
        layout = layout.choose(path, first, names, [])
    except UserError:
        return "", []  # the actual reader raises the error again
    return _peek(layout, text, first)


def file_column(path: str, names: Names, media: Sequence[Medium]) -> str | None:
    """Return the source column of a table: that of the user, or one with a header of files.

    Such a header is known, and most values below have a suffix of the medium. None: determined as
    for texts, such as by known headers of source and target. names: columns that the user passed.
    """
    text, layout, first = _open_start(path)
    if layout is None or first is None:
        return names[0]
    headers = [name.strip() for name in first[1]]
    candidates = [] if known_header(headers) else headers
    if names[0] is not None:
        is_index = names[0].isdecimal() and names[0] not in headers
        candidates = headers[int(names[0]) - 1 :][:1] if is_index else []
    for header in candidates:
        for medium in media:
            if not medium.names(header) or headers.count(header) > 1:
                continue
            _, values = _peek(only_column(layout, path, first, header, medium), text, first)
            if _are_most(sum(map(medium.has_suffix, values)), values):
                return header
    return names[0]


def only_column(
    layout: PairFormat, path: str, first: Row, column: str, medium: Medium
) -> PairFormat:
    """Return the layout with this column as source and target."""
    if isinstance(layout, JsonPairs):
        keys = find_keys(column, first[1])
        return replace(layout, source=keys, target=keys)
    assert isinstance(layout, TablePairs)
    indices, named = find_columns(path, first[0], "source", column, first[1])
    header = named or any(medium.names(name.strip()) for name in first[1])
    columns = Columns(indices, indices, header, True)
    return replace(
        layout, columns=columns, header=first[0] if header else 0, expected=columns.needed
    )


def _open_start(path: str) -> tuple[str, PairFormat | None, Row | None]:
    """Return the first lines of a table, its format and first row; None if they are blank."""
    text = "\n".join(itertools.islice(read_lines(path), MAX_ROWS + 1))
    if not text.strip():
        return text, None, None
    layout = recognize(path, text, []).open(path, text, [])
    return text, layout, layout.first(text, 1)


def _peek(layout: PairFormat, text: str, first: Row) -> tuple[str, list[str]]:
    """Return the header of the source column of a layout, and the sources that are not empty."""
    header, values = layout.peek(text, first)
    return header, [value.strip() for value in values if value.strip()]


def _are_most(count: int, values: Sequence[str]) -> bool:
    """Return whether this number of files are enough for a column with these values."""
    return bool(values) and count >= MIN_FILES * len(values)


def hint(path: str, pairs: Sequence[Pair], media: Sequence[Medium]) -> list[str]:
    """Return a note if most texts are names of existing files, which are not read."""
    values = [pair.source for pair in pairs[:MAX_ROWS] if isinstance(pair.source, str)]
    for medium in media:
        like = [value for value in values if medium.has_suffix(value.strip())]
        if _are_most(sum(resolve(path, value).is_file() for value in like), values):
            return [
                f"the sources are texts, but also names of {medium.name} files; "
                "--source-column COLUMN reads the files"
            ]
    return []


def resolve(table: str, value: str) -> Path:
    """Return the path of a file that a table names."""
    return Path(table).parent / value.strip()


def locate(line: str, table: str) -> Path:
    """Return the existing file that a line of a list of files names.

    Paths are relative to the folder of the list; in standard input (`-`), to the current folder.
    """
    if not line.strip():
        raise UserError("expected the name of a file, found nothing")
    path = resolve(table, line)
    if not path.exists() and Path(line.strip()).exists():
        raise UserError(
            f"{path}: no such file",
            help=f"paths are relative to the folder of the list, {Path(table).parent.resolve()}; "
            f"{line.strip()} exists relative to the current folder: move the list there, or pass "
            "it as --input -",
        )
    return path


def read_table(pairs: Pairs, medium: Medium, prepare: Prepare) -> Pairs:
    """Return the pairs of a table with the sources in the files that it names."""
    files: dict[Path, MediaFile] = {}
    for pair in pairs.pairs:
        where = f"{pairs.path} line {pair.line}"
        if not pair.source.strip():
            raise UserError(
                f"{where}: expected the name of a file, found nothing",
                help="remove the line, or add the name",
            )
        path = resolve(pairs.path, pair.source)
        files.setdefault(path, MediaFile(path, where))
    check_exist(pairs.path, files, [pair.source for pair in pairs.pairs])
    count = count_noun(len(files), "file")
    notes = [*pairs.notes, f"{medium.name}s: {count}, paths relative to the folder of the table"]
    sources = read_files(medium, [*files.values()], prepare, notes)
    kept = [
        Pair(sources[resolve(pairs.path, pair.source)], pair.target, pair.line)
        for pair in pairs.pairs
    ]
    return Pairs(pairs.name, pairs.path, kept, notes)


def check_exist(table: str, files: dict[Path, MediaFile], names: Sequence[str]) -> None:
    """Raise one UserError for all missing files of a table. names: as in the table."""
    missing = [file for path, file in files.items() if not os.path.exists(path)]
    folder = Path(table).parent
    help = f"paths are relative to the folder of the table, {folder.resolve()}"
    if missing and all(os.path.exists(name.strip()) for name in names[:MAX_ROWS]):
        help += "; these files exist relative to the current folder: move the table there"
    elif missing:
        help += f"; {CHOOSE}"
    raise_errors(
        [UserError(f"{file.where}: {file.path}: no such file", help=help) for file in missing],
        f"of {len(files):,} files missing",
    )
