"""Inputs of prediction that are files of a medium: a folder, one file, or a table of files."""

import os
from collections.abc import Callable
from typing import Any

from regard.core.errors import UserError
from regard.core.formatting import count_noun
from regard.data.reading.media import Medium, show_names
from regard.data.reading.media_folder import split_files
from regard.data.reading.media_rows import list_rows, table_rows
from regard.data.reading.media_table import resolve
from regard.inputs.input import NamedSources


def media_sources(
    path: str, column: str | None, medium: Medium, parse: Callable[[str], Any]
) -> NamedSources | None:
    """Return the files of a medium in a folder, a table or a list, or one file; None for others.

    column: of a table. parse: reads a file. Other files in a folder are counted in a note.
    """
    if os.path.isdir(path):
        return _folder(path, medium, parse)
    if path != "-" and os.path.exists(path) and medium.recognizes(path):
        return NamedSources([path], parse, [])
    return _table(path, column, medium, parse)


def _folder(folder: str, medium: Medium, parse: Callable[[str], Any]) -> NamedSources:
    files, others = split_files(folder, medium)
    if not files:
        count = count_noun(len(others), "other file")
        raise UserError(f"{folder}: no {medium.name}s in this folder, {count}")
    notes = [f"read as a folder: {count_noun(len(files), medium.name)}"]
    if others:
        names = show_names(path.name for path in others)
        count = count_noun(len(others), "file")
        notes.append(f"skipped: {count} of other kinds: {names}")
    return NamedSources([str(path) for path in files], parse, notes)


def _table(
    path: str, column: str | None, medium: Medium, parse: Callable[[str], Any]
) -> NamedSources | None:
    """Return the files that a table or list names; None for standard input and pipes."""
    rows, what = table_rows(path, column, medium), "table"
    if rows is None:
        rows, what = list_rows(path), "list"
    if rows is None:
        return None
    lines = {name: line for line, name in reversed(rows)}

    def read(name: str) -> Any:
        try:
            return parse(str(resolve(path, name)))
        except UserError as error:
            raise error.at(f"{path} line {lines[name]}") from error

    files = count_noun(len({name for _, name in rows}), "file")
    notes = [f"{medium.name}s: {files}, paths relative to the folder of the {what}"]
    return NamedSources([name for _, name in rows], read, notes, lines)
