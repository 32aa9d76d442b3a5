"""Open files of a medium, such as images, with their targets, from any of the formats."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from regard.core.errors import UserError
from regard.data.reading.idx import is_idx, read_idx
from regard.data.reading.image_arrays import is_npz, read_npz
from regard.data.reading.image_files import IMAGES
from regard.data.reading.media import Medium, Prepare, change_notes, check_memory, show_names
from regard.data.reading.media_folder import folder_medium, read_folder
from regard.data.reading.media_table import file_column, file_medium, hint, read_table
from regard.data.reading.read import Pair, Pairs
from regard.data.reading.sound_files import SOUNDS
from regard.data.reading.speakers import with_speakers
from regard.data.sources.open import DataSpec

MEDIA: tuple[Medium, ...] = (IMAGES, SOUNDS)


@dataclass(frozen=True)
class Targets:
    """How a task reads the targets of sources.

    noun: plural noun for targets. table: reads the targets of a table, with texts as sources.
    convert: returns the targets of an example from the values in an array; raises ValueError.
    classes: whether the name of a class folder is a target.
    """

    noun: str
    table: Callable[[DataSpec], Pairs]
    convert: Callable[[tuple[Any, ...]], list[Any]]
    classes: bool = False


def read_media(spec: DataSpec, targets: Targets, prepare: Prepare) -> Pairs | None:
    """Return the files of a medium, or arrays, with their targets; None for other data.

    prepare: reduces a source to what the model reads, so that it takes less memory.
    """
    if spec.source and spec.target and (is_idx(spec.source) or is_idx(spec.target)):
        return _converted(read_idx(spec.source, spec.target), targets, prepare)
    if spec.data is None or spec.data == "-":
        return None
    if os.path.isdir(spec.data):
        return _folder(spec, spec.data, targets, prepare)
    if is_npz(spec.data):
        _check_no_splits(spec)
        arrays = read_npz(spec.data, spec.source_column, spec.target_column)
        return _converted(arrays, targets, prepare)
    names = spec.source_column, spec.target_column
    column = file_column(spec.data, names, MEDIA)
    medium = file_medium(spec.data, (column, spec.target_column), MEDIA)
    if medium is None:
        return None
    pairs = read_table(targets.table(replace(spec, source_column=column)), medium, prepare)
    return with_speakers(pairs, spec.speaker_column) if spec.speaker_column else pairs


def check_no_media(spec: DataSpec, task: str, reads: str) -> None:
    """Raise UserError if the sources are files, such as sounds, which this task does not read.

    reads: plural noun for what it reads.
    """
    if spec.data and (medium := _medium_of(spec, spec.data)):
        raise UserError(
            f"{spec.data}: the sources are {medium.name} files: not supported for --task {task}, "
            f"which reads {reads}",
            help="use --task classify (labels), regress (numbers) or transduce (texts)",
        )


def _medium_of(spec: DataSpec, path: str) -> Medium | None:
    """Return the medium of a folder, a file, or the files in a table; None for other data."""
    if os.path.isdir(path):
        return folder_medium(path, MEDIA)
    if not os.path.isfile(path):
        return None
    if found := next((one for one in MEDIA if one.recognizes(path)), None):
        return found
    try:
        names = spec.source_column, spec.target_column
        return file_medium(path, (file_column(path, names, MEDIA), names[1]), MEDIA)
    except UserError:
        return None  # the actual reader raises the error again


def with_hint(spec: DataSpec, pairs: Pairs) -> Pairs:
    """Return pairs of texts with a note if the texts are names of files."""
    if spec.speaker_column:
        raise UserError("--speaker-column: only supported for tables of sound files")
    if spec.data and spec.data != "-" and (notes := hint(spec.data, pairs.pairs, MEDIA)):
        return Pairs(pairs.name, pairs.path, pairs.pairs, [*pairs.notes, *notes])
    return pairs


def _folder(spec: DataSpec, folder: str, targets: Targets, prepare: Prepare) -> Pairs:
    if not targets.classes:
        raise UserError(
            f"{folder}: a folder has classes, but this task needs {targets.noun}",
            help="add --task classify, or list the files in a table with a column of targets: "
            "--source-column file",
        )
    _check_no_splits(spec)
    medium = folder_medium(folder, MEDIA)
    if medium is None:
        known = show_names(sorted(suffix for one in MEDIA for suffix in one.suffixes), 20)
        raise UserError(f"{folder}: no files that can be read in this folder: expected {known}")
    return read_folder(folder, medium, prepare)


def _check_no_splits(spec: DataSpec) -> None:
    """Raise UserError if the user passed a column that only tables have."""
    if spec.split_column:
        raise UserError(
            f"{spec.data}: --split-column: only tables have columns of splits",
            help="pass the dev set with --dev",
        )
    if spec.speaker_column:
        raise UserError(f"{spec.data}: --speaker-column: only tables have columns of speakers")


def _converted(arrays: Pairs, targets: Targets, prepare: Prepare) -> Pairs:
    """Return the pairs of arrays with the targets of the task, and sources that are prepared."""
    pairs: list[Pair] = []
    changes: Counter[str] = Counter()
    convert, notes = targets.convert, []
    if targets.classes and (count := len(arrays.pairs[0].target)) > 1:
        are_indicators = all(set(one.target) <= {0, 1} for one in arrays.pairs)
        convert = as_indicated if are_indicators else convert
        meaning = "0 and 1 per label" if are_indicators else "names of labels"
        notes.append(f"{count:,} values per target, read as {meaning}")
    memory = 0
    for number, one in enumerate(arrays.pairs, 1):
        try:
            found: Sequence[Any] = convert(one.target)
        except ValueError as error:
            raise UserError(
                f"{one.source.name}: expected {targets.noun}, found {one.target!r:.80}",
                help="add missing targets, choose the array with --target-column, or another "
                "--task",
            ) from error
        source = prepare(one.source, changes)
        memory += source.nbytes
        check_memory(memory, (number, len(arrays.pairs)), arrays.path, IMAGES)
        pairs += [Pair(source, target, one.line) for target in found]
    notes = [*arrays.notes, *notes, *change_notes(changes)]
    return Pairs(arrays.name, arrays.path, pairs, notes)


def as_labels(values: tuple[Any, ...]) -> list[Any]:
    """Return the values of an array, which are names of labels, as the labels of an example."""
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        raise ValueError("a label is not finite")
    labels = dict.fromkeys(str(value).strip() for value in values)
    if len(values) > 1:
        labels.pop("", None)
    elif "" in labels:
        raise ValueError("a label is empty")
    return [tuple(labels)]


def as_indicated(values: tuple[Any, ...]) -> list[Any]:
    """Return the labels of an example that values of 0 and 1, one per label, indicate."""
    return [tuple(str(index) for index, value in enumerate(values) if value)]


def as_numbers(values: tuple[Any, ...]) -> list[Any]:
    """Return the values of an array as the numbers of an example."""
    numbers = tuple(map(float, values))
    if not all(map(math.isfinite, numbers)):
        raise ValueError("a number is not finite")
    return [numbers]


def as_texts(values: tuple[Any, ...]) -> list[Any]:
    """Return the values of an array as the texts (references) of an example; skip empty ones."""
    texts = [str(value) for value in values]
    return [text for text in texts if text.strip()] or texts[:1]
