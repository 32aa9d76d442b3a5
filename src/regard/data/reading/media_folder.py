"""Folders by class: one subfolder per class, with the files of this class."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from regard.core.errors import UserError
from regard.core.formatting import count_noun
from regard.data.reading.lines import readable_os_errors
from regard.data.reading.media import (
    MediaFile,
    Medium,
    Prepare,
    read_files,
    show_names,
    suffix,
)
from regard.data.reading.read import Pair, Pairs
from regard.data.reading.splits import DEV, TRAIN

SPLITS = (*TRAIN, *DEV, "test")


@dataclass
class ClassFolder:
    """The files of one class: those of a medium, and others, which are not read."""

    name: str
    files: list[Path] = field(default_factory=list)
    others: list[Path] = field(default_factory=list)


def list_files(folder: str) -> Iterator[Path]:
    """Yield the files in a folder and its subfolders, sorted by name. Links are followed once."""
    seen: set[str] = set()

    def walk(path: str) -> Iterator[Path]:
        if (real := os.path.realpath(path)) in seen:
            return
        seen.add(real)
        with readable_os_errors(path), os.scandir(path) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            if entry.is_dir():
                yield from walk(entry.path)
            else:
                yield Path(entry.path)

    return walk(folder)


def folder_medium(folder: str, media: Sequence[Medium]) -> Medium | None:
    """Return the medium of most files in a folder; None if there are none."""
    counts = Counter(
        medium.name for path in list_files(folder) for medium in media if _is_of(medium, path)
    )
    return max(media, key=lambda medium: counts[medium.name]) if counts else None


def split_files(folder: str, medium: Medium) -> tuple[list[Path], list[Path]]:
    """Return the files of a medium in a folder and its subfolders, and the other files."""
    files: list[Path] = []
    others: list[Path] = []
    for path in list_files(folder):
        (files if _is_of(medium, path) else others).append(path)
    return files, others


def _is_of(medium: Medium, path: Path) -> bool:
    """Return whether a file is of a medium. Hidden files, such as `._a.png`, are not."""
    return not path.name.startswith(".") and path.is_file() and medium.recognizes(str(path))


def read_folder(folder: str, medium: Medium, prepare: Prepare) -> Pairs:
    """Return the files of a folder with one subfolder per class; the target is a tuple of labels.

    Other files are counted in a note, never silently skipped.
    """
    outside, classes = _classes(folder, medium)
    filled = [one for one in classes if one.files]
    if not filled:
        _raise_no_classes(folder, outside, classes, medium)
    _check_no_splits(folder, filled)
    files = [(path, one.name) for one in filled for path in one.files]
    notes = [f"read as a folder by class: {_counts(files, medium, len(filled))}"]
    notes += _notes(outside, classes, medium)
    sources = read_files(medium, [MediaFile(path) for path, _ in files], prepare, notes)
    pairs = [Pair(sources[path], (label,), number) for number, (path, label) in enumerate(files, 1)]
    return Pairs(Path(folder).resolve().name, folder, pairs, notes)


def _classes(folder: str, medium: Medium) -> tuple[list[Path], list[ClassFolder]]:
    """Return the files outside of class folders, and the class folders."""
    with readable_os_errors(folder):
        entries = sorted(Path(folder).iterdir())
    outside = [path for path in entries if not path.is_dir()]
    classes = []
    for path in entries:
        if not path.is_dir():
            continue
        found = ClassFolder(path.name)
        for file in list_files(str(path)):
            hidden = path.name.startswith(".")
            (found.files if not hidden and _is_of(medium, file) else found.others).append(file)
        classes.append(found)
    return outside, classes


def _counts(files: Sequence[tuple[Path, str]], medium: Medium, classes: int) -> str:
    """Return the number of files, in total and by suffix, and of classes."""
    kinds = Counter(suffix(path.name) or "without suffix" for path, _ in files)
    kinds_shown = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    count = count_noun(len(files), medium.name)
    return f"{count} ({kinds_shown}) in {classes:,} class{'es' if classes != 1 else ''}"


def _notes(
    outside: Sequence[Path], classes: Sequence[ClassFolder], medium: Medium
) -> Iterator[str]:
    """Yield a note for each kind of files that are not read, and for classes with few files."""
    if outside:
        names = show_names(path.name for path in outside)
        yield f"skipped: {count_noun(len(outside), 'file')} outside of class folders: {names}"
    if others := [path for one in classes for path in one.others]:
        names = show_names("/".join(path.parts[-2:]) for path in others)
        yield f"skipped: {count_noun(len(others), 'file')} of other kinds: {names}"
    if empty := [one.name for one in classes if not one.files]:
        yield f"skipped: {count_noun(len(empty), 'folder')} without {medium.name}s: " + (
            show_names(empty)
        )
    if single := [one.name for one in classes if len(one.files) == 1]:
        yield (
            f"warning: classes with one {medium.name}, which cannot be in both the training and "
            f"the dev set: {show_names(single)}"
        )


def _raise_no_classes(
    folder: str, outside: Sequence[Path], classes: Sequence[ClassFolder], medium: Medium
) -> None:
    """Raise UserError for a folder without class folders that have files."""
    images = sum(_is_of(medium, path) for path in outside)
    found = count_noun(images, f"{medium.name} file")
    if classes:
        found += f" and {count_noun(len(classes), 'subfolder')} without {medium.name}s"
    raise UserError(
        f"{folder}: expected one subfolder with {medium.name}s per class, found {found}",
        help="move the files into subfolders, or list them in a table: --source-column file",
    )


def _check_no_splits(folder: str, classes: Sequence[ClassFolder]) -> None:
    """Raise UserError if the subfolders are a training and a dev or test set, not classes."""
    names = {one.name.lower(): one.name for one in classes}
    if not (set(names) <= set(SPLITS) and set(names) & set(TRAIN)):
        return
    train = names[next(name for name in TRAIN if name in names)]
    dev = next((f" --dev {Path(folder) / names[name]}" for name in DEV if name in names), "")
    raise UserError(
        f"{folder}: expected one subfolder per class, found the splits "
        f"{', '.join(sorted(names.values()))}",
        help=f"pass them separately: {Path(folder) / train}{dev}",
    )
