"""Media: kinds of files, such as images, each of which is the source of an example."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.core.errors import UserError
from regard.core.formatting import count_noun, size
from regard.core.limits import memory_limit
from regard.core.progress import ProgressBar
from regard.data.reading.lines import MAX_SHOWN

COLUMNS = frozenset({"file", "path", "filename", "file_name"})  # headers of file columns
MAX_MEMORY = 32  # times the memory limit for text, which takes about ten times its size
Prepare = Callable[[Any, Counter[str]], Any]  # source, what was converted -> smaller source


@dataclass(frozen=True)
class Medium:
    """A kind of files.

    name: noun for one source, such as "image". columns: headers of columns with such files.
    suffixes: of file names, with the dot. start: matches the first bytes of files without suffix.
    read: returns the source in a file, with the attribute `nbytes`, and counts what was converted.
    type: class of these sources. convert: returns the source of a Python object such as an array,
    given a name for messages; None if it is no object of this medium.
    reduce: what to do if the sources do not fit in memory.
    """

    name: str
    columns: frozenset[str]
    suffixes: frozenset[str]
    start: re.Pattern[bytes]
    read: Callable[[str, Counter[str]], Any]
    type: type
    convert: Callable[[Any, str], Any | None]
    reduce: str

    def names(self, header: str) -> bool:
        """Return whether a column with this header has names of such files."""
        return header.lower() in COLUMNS | self.columns

    def has_suffix(self, name: str) -> bool:
        """Return whether a file name has a suffix of this medium."""
        return suffix(name) in self.suffixes

    def recognizes(self, path: str) -> bool:
        """Return whether a file is of this medium by its suffix or, without one, first bytes."""
        if suffix(path):
            return self.has_suffix(path)
        try:
            with open(path, "rb") as stream:
                return self.start.match(stream.read(16)) is not None
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class MediaFile:
    """A file to read. where: where it is named, as `train.tsv line 3`; empty: nowhere."""

    path: Path
    where: str = ""


def suffix(name: str) -> str:
    """Return the suffix of a file name in lower case, with the dot; empty without one."""
    return os.path.splitext(name)[1].lower()


def read_files(
    medium: Medium, files: Sequence[MediaFile], prepare: Prepare, notes: list[str]
) -> dict[Path, Any]:
    """Return the source in each file, which is read once. Raise one UserError for all bad files.

    prepare: reduces a source to what the model reads. notes: list to which what was converted is
    appended.
    """
    found: dict[Path, Any] = {}
    problems: list[UserError] = []
    changes: Counter[str] = Counter()
    memory = 0
    with ProgressBar(f"reading {medium.name}s", len(files)) as bar:
        for file in files:
            bar.advance(1)
            if file.path in found:
                continue
            try:
                source = prepare(medium.read(str(file.path), changes), changes)
            except UserError as error:
                problems.append(error.at(file.where) if file.where else error)
                continue
            found[file.path] = source
            memory += source.nbytes
            check_memory(memory, (len(found), len(files)), str(file.path), medium)
    raise_errors(problems, f"bad {medium.name} files")
    notes += change_notes(changes)
    return found


def check_memory(memory: int, counts: tuple[int, int], where: str, medium: Medium) -> None:
    """Raise UserError if sources take too much memory. counts: number so far, and in total."""
    if memory > (limit := MAX_MEMORY * memory_limit()):
        raise UserError(
            f"{where}: the first {counts[0]:,} of {count_noun(counts[1], medium.name)} "
            f"take {size(memory)} of memory: expected at most {size(limit)}",
            help=f"{medium.reduce}, or raise the limit: REGARD_MEMORY="
            f"{2 * memory_limit() // 1024**2}MB",
        )


def change_notes(changes: Counter[str]) -> list[str]:
    """Return a note for each kind of conversion with its count."""
    return [f"{change}: {count:,}" for change, count in sorted(changes.items())]


def raise_errors(errors: Sequence[UserError], what: str) -> None:
    """Raise one UserError for several, if any, with the first ten and their helps.

    what: plural noun.
    """
    if not errors:
        return
    report = [error.message for error in errors[:MAX_SHOWN]]
    if len(errors) > MAX_SHOWN:
        more = len(errors) - MAX_SHOWN
        report.append(f"and {more:,} more; {len(errors):,} {what} in total")
    helps = dict.fromkeys(error.help for error in errors[:MAX_SHOWN] if error.help)
    raise UserError("\n".join(report), help="\nhelp: ".join(helps))


def show_names(names: Iterable[str], max_shown: int = 5) -> str:
    """Return the first names, separated by commas, and how many follow."""
    every = list(names)
    more = f" and {len(every) - max_shown:,} more" if len(every) > max_shown else ""
    return ", ".join(every[:max_shown]) + more
