"""The sources in a folder or in one file of a medium, as inputs of such files read them."""

import os
from collections.abc import Callable
from typing import Any

from regard.core.errors import UserError
from regard.core.formatting import count_noun
from regard.data.reading.media import Medium, show_names
from regard.data.reading.media_folder import split_files
from regard.inputs.input import NamedSources


def medium_sources(path: str, medium: Medium, read: Callable[[str], Any]) -> NamedSources | None:
    """Return the sources of a folder or of one file; None if it is another file.

    read: returns the source in a file of the medium.
    """
    if os.path.isdir(path):
        return _folder_sources(path, medium, read)
    if path != "-" and os.path.exists(path) and medium.recognizes(path):
        return NamedSources([path], read, [])
    return None


def _folder_sources(folder: str, medium: Medium, read: Callable[[str], Any]) -> NamedSources:
    """Return the sources in a folder and its subfolders; count the other files."""
    files, others = split_files(folder, medium)
    if not files:
        raise UserError(f"{folder}: no {medium.name}s in this folder ({len(others):,} other files)")
    notes = [f"read as a folder: {count_noun(len(files), medium.name)}"]
    if others:
        names = show_names(path.name for path in others)
        notes.append(
            f"skipped: {count_noun(len(others), 'file')} that are no {medium.name}s: {names}"
        )
    return NamedSources([str(path) for path in files], read, notes)
