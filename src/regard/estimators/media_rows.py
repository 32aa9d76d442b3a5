"""Conversion of rows to sources in files, such as images: arrays, Pillow images, paths."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.core.errors import UserError
from regard.data.reading.image_files import IMAGES
from regard.data.reading.lines import missing_file
from regard.data.reading.media import MediaFile, Medium, Prepare, change_notes, read_files
from regard.data.reading.sound_files import SOUNDS
from regard.data.reading.sounds import Sound, from_array
from regard.data.sources.media import MEDIA
from regard.inputs.input import Input


def media_rows(
    rows: Sequence[Any], prepare: Prepare, notes: list[str], rate: int | None = None
) -> list[Any] | None:
    """Return rows as sources of a medium, such as images; None if they are something else.

    Rows are `Path` objects, names of existing files, or what the medium converts, such as arrays.
    prepare: reduces a source to what the model reads. notes: list to which what was converted is
    appended. rate: sampling rate in Hz, if rows are sounds.
    """
    if not len(rows):
        return None
    if (file_medium := _medium_of(rows, MEDIA if rate is None else (SOUNDS,))) is not None:
        files = [MediaFile(Path(row), f"example {n}") for n, row in enumerate(rows, 1)]
        found = read_files(file_medium, files, prepare, notes)
        return [found[file.path] for file in files]
    if rate is not None:
        return sounds(rows, rate, prepare, notes)
    for medium in MEDIA:
        if medium.convert(rows[0], "example 1") is not None:
            return [_converted(row, number, medium) for number, row in enumerate(rows, 1)]
    return None


def sounds(rows: Sequence[Any], rate: int, prepare: Prepare, notes: list[str]) -> list[Sound]:
    """Return arrays of samples as sounds of this rate; files and sounds may have another one."""
    changes: Counter[str] = Counter()
    found = []
    for number, row in enumerate(rows, 1):
        found.append(prepare(_sound(row, rate, f"example {number}", changes), changes))
    notes += change_notes(changes)
    return found


def _sound(row: Any, rate: int, name: str, changes: Counter[str]) -> Sound:
    """Return the sound of a row: the name of a file, a sound, or an array with this rate."""
    if isinstance(row, Sound):
        return row
    if not isinstance(row, str | Path):
        return from_array(row, rate, name)
    if not os.path.isfile(row):
        raise UserError(f"{name}: {missing_file(str(row))}", help="pass arrays or names of files")
    try:
        sound: Sound = SOUNDS.read(str(row), changes)
    except UserError as error:
        raise error.at(name) from error
    return sound


def _medium_of(rows: Sequence[Any], media: Sequence[Medium]) -> Medium | None:
    """Return the medium of rows that are paths: `Path` objects, or texts that are all files."""
    if all(isinstance(row, Path) for row in rows):
        return max(media, key=lambda one: sum(one.recognizes(str(row)) for row in rows))
    return next((one for one in media if all(_is_file(row, one) for row in rows)), None)


def _is_file(row: Any, medium: Medium) -> bool:
    """Return whether a row is the name of an existing file of a medium."""
    return isinstance(row, str | Path) and os.path.isfile(row) and medium.recognizes(os.fspath(row))


def _converted(row: Any, number: int, medium: Medium) -> Any:
    found = medium.convert(row, f"example {number}")
    if found is None:
        shown = "a text" if isinstance(row, str) else type(row).__name__
        article = "an" if medium.name[0] in "aeiou" else "a"
        raise UserError(
            f"example {number}: expected {article} {medium.name} as in example 1, found {shown}"
        )
    return found


def check_array(X: Any, reader: Input) -> None:
    """Raise UserError if X is one color image (H, W, C), not an array of images (N, H, W).

    reader: the fitted input, which could convert each row of pixels as an image.
    """
    shape, grid = tuple(getattr(X, "shape", ())), reader.shape.grid
    if IMAGES.name != reader.kind or reader.shape.size != 3 or len(shape) != 3:
        return
    if shape[2] in (1, 3) and shape[1:] != grid:
        raise UserError(
            f"X: expected an array of images (N, H, W, C), found one image {shape}",
            help="pass a list with one image: [image]",
        )


def check_kind(sources: Sequence[Any], reader: Input) -> None:
    """Raise UserError for files if the model was trained on other sources, and vice versa.

    reader: the fitted input.
    """
    if not len(sources):
        return
    first, media = sources[0], [medium for medium in MEDIA if isinstance(sources[0], medium.type)]
    if bool(media) == bool(reader.media):
        return
    found = f"{media[0].name}s" if media else "texts" if isinstance(first, str) else "numbers"
    names = [one for one in sources if isinstance(one, str) and not Path(one).is_file()]
    hint = f"; {missing_file(names[0])}" if names and not media else ""
    raise UserError(
        f"X: expected {reader.plural} as in training, found {found}{hint}",
        help="" if media else "pass arrays, Pillow images or names of existing files",
    )
