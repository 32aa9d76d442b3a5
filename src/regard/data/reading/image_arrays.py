"""Read images from arrays: NPZ files (NumPy).

N images, H height, W width, C channels. Sizes are checked in the headers before any pixel is read.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.core.errors import UserError
from regard.core.formatting import size
from regard.core.limits import memory_limit
from regard.data.reading.images import Image, as_bytes, check_channels, check_size, show_shape
from regard.data.reading.lines import missing_file, stem
from regard.data.reading.media import MAX_MEMORY
from regard.data.reading.read import Pair, Pairs

IMAGES = ("images", "image", "x", "X", "data")
LABELS = ("labels", "label", "y", "Y", "targets", "target")


def is_npz(path: str) -> bool:
    """Return whether a file name is that of an NPZ file."""
    return path.lower().endswith(".npz")


def read_npz(
    path: str, source_column: str | None = None, target_column: str | None = None
) -> Pairs:
    """Return the images of an NPZ file, each with its label or number.

    The array `images` is (N, H, W) or (N, H, W, C): uint8, or floats from 0 to 1. The array
    `labels` is (N,) or (N, K). source_column, target_column: other names of the arrays.
    """
    arrays = NpzArrays(path)
    source, target = arrays.find(source_column, IMAGES), arrays.find(target_column, LABELS)
    images, notes = arrays.images(source)
    notes = [f"read as NPZ, targets from {target}", *notes]
    return array_pairs(path, images, arrays.read(target), (source, target), notes)


def array_pairs(
    path: str, images: list[Image], labels: np.ndarray, names: tuple[str, str], notes: list[str]
) -> Pairs:
    """Return each image with its label. names: names of images and labels, for the error."""
    where = "" if path == names[0] else f"{path}: "
    if not labels.shape or len(labels) != len(images):
        count = f"{len(labels):,} entries" if labels.shape else "one value"
        raise UserError(
            f"{where}{names[0]} has {len(images):,} images, but {names[1]} has {count}: expected "
            "the same number",
            help="pass the labels of these images",
        )
    if labels.ndim > 2:
        raise UserError(
            f"{where}{names[1]}: expected labels of shape (N,) or (N, K), found {labels.shape}",
            help="choose another array with --target-column",
        )
    pairs = [
        Pair(image, to_target(label), number)
        for number, (image, label) in enumerate(zip(images, labels, strict=True), 1)
    ]
    shape = f"{len(pairs):,} images of {show_shape(images[0].shape)}"
    return Pairs(stem(path), path, pairs, [*notes, shape])


def to_target(label: Any) -> tuple[Any, ...]:
    """Return the target of an example as a tuple of texts or numbers."""
    values = np.atleast_1d(label).tolist()
    return tuple(_text(value) for value in values)


def _text(value: Any) -> Any:
    """Return bytes as a text, and other values unchanged."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


class NpzArrays:
    """The arrays of an NPZ file, whose headers are checked before they are read."""

    def __init__(self, path: str) -> None:
        self.path = path
        if not Path(path).exists():
            raise UserError(missing_file(path))
        try:
            with zipfile.ZipFile(path) as archive:
                self.names = [
                    name.removesuffix(".npy")
                    for name in archive.namelist()
                    if name.endswith(".npy")
                ]
        except Exception as error:  # as in `read`
            raise self._corrupted(error) from None
        if not self.names:
            raise UserError(f"{path}: no arrays: expected `images` and `labels`")

    def _corrupted(self, error: Exception) -> UserError:
        """Return the error for a file that is corrupted, encrypted or of unknown compression."""
        # zipfile raises RuntimeError for encryption, NotImplementedError for a compression
        unsupported = isinstance(error, RuntimeError | NotImplementedError)
        what = (
            "NPZ file that is not supported" if unsupported else "corrupted or truncated NPZ file"
        )
        return UserError(
            f"{self.path}: {what}: {error}",
            help="copy it again, or write it again with numpy.savez_compressed",
        )

    def find(self, chosen: str | None, known: Sequence[str]) -> str:
        """Return the name of an array: the chosen one, or the first of the known names."""
        found = [name for name in ([chosen] if chosen else known) if name in self.names]
        if found:
            return found[0]
        raise UserError(
            f"{self.path}: no array `{chosen or known[0]}`: found {', '.join(self.names)}",
            help="choose with --source-column and --target-column",
        )

    def images(self, name: str) -> tuple[list[Image], list[str]]:
        """Return the images of an array (N, H, W) or (N, H, W, C), and notes."""
        where = f"{self.path}: {name}"
        check_shape(self.shape(name), where)
        return to_images(self.read(name), where, Path(self.path).name)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape in the header of an array; raise UserError if it is too large."""
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(f"{name}.npy") as stream:
                version = np.lib.format.read_magic(stream)
                read = {1: np.lib.format.read_array_header_1_0}.get(
                    version[0], np.lib.format.read_array_header_2_0
                )
                shape, _, kind = read(stream)
        except Exception as error:  # as in `read`
            raise self._corrupted(error) from None
        if kind.hasobject:
            raise UserError(
                f"{self.path}: {name}: array of Python objects, which is not read because it can "
                "run code",
                help="store images of one size as uint8, and labels as integers or strings",
            )
        check_bytes(f"{self.path}: {name}", shape, kind.itemsize)
        return tuple(shape)

    def read(self, name: str) -> np.ndarray:
        """Return an array, after a check of its header."""
        self.shape(name)
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                found: np.ndarray = archive[name]
        except Exception as error:  # zlib.error, BadZipFile, ValueError, struct.error and others
            raise self._corrupted(error) from None
        return found


def check_shape(shape: tuple[int, ...], where: str) -> None:
    """Raise UserError unless a shape is that of images: (N, H, W) or (N, H, W, C)."""
    if len(shape) not in (3, 4):
        raise UserError(f"{where}: expected shape (N, H, W) or (N, H, W, C), found {shape}")
    if not shape[0]:
        raise UserError(f"{where}: no images")
    if len(shape) == 4:
        check_channels(shape, where)
    check_size(where, *shape[1:3])


def to_images(pixels: np.ndarray, where: str, file: str) -> tuple[list[Image], list[str]]:
    """Return the images of an array, and notes. file: name of the file, for their names."""
    notes = [] if pixels.dtype == np.uint8 else [f"{pixels.dtype} pixels converted to uint8"]
    pixels = as_bytes(pixels, where)
    pixels = pixels[..., None] if pixels.ndim == 3 else pixels
    return [Image(one, f"{file} image {at}") for at, one in enumerate(pixels, 1)], notes


def check_bytes(where: str, shape: Sequence[int], itemsize: int = 1) -> None:
    """Raise UserError if an array of this shape is too large for memory."""
    limit = MAX_MEMORY * memory_limit()
    if (count := math.prod(map(int, shape)) * itemsize) > limit:
        raise UserError(
            f"{where}: array of shape {tuple(shape)}, {size(count)}: expected at most "
            f"{size(limit)}",
            help="use smaller images, or raise the limit: REGARD_MEMORY="
            f"{-(-count // MAX_MEMORY // 1024**2)}MB",
        )
