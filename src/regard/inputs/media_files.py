"""Inputs of prediction that are files of a medium, such as images: a folder, or one file."""

import os
from collections.abc import Callable
from typing import Any

from regard.core.errors import UserError
from regard.core.formatting import count_noun
from regard.data.reading.media import Medium, show_names
from regard.data.reading.media_folder import split_files
from regard.inputs.input import NamedSources


def media_sources(path: str, medium: Medium, parse: Callable[[str], Any]) -> NamedSources | None:
    """Return the files of a medium in a folder and its subfolders, or one file; None for others.

    parse: reads a file. Other files in a folder are counted in a note.
    """
    if os.path.isdir(path):
        return _folder(path, medium, parse)
    if path != "-" and os.path.exists(path) and medium.recognizes(path):
        return NamedSources([path], parse, [])
    return None


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
