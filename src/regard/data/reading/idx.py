"""Read images and labels from IDX files, the format of MNIST, plain or gzip.

The header has the type of the numbers and the size of each dimension; it is checked before memory
is allocated. N images, H height, W width, C channels.
"""

from __future__ import annotations

import math
import os
import struct
from pathlib import Path
from typing import BinaryIO

import numpy as np

from regard.core.errors import UserError
from regard.data.reading.image_arrays import (
    IMAGES,
    NpzArrays,
    array_pairs,
    check_bytes,
    check_shape,
    is_npz,
    to_images,
)
from regard.data.reading.images import Image
from regard.data.reading.lines import missing_file, open_bytes, readable_os_errors
from regard.data.reading.read import Pairs

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MAX_DIMENSIONS = 4
BLOCK = 1 << 20  # bytes read at once
AGAIN = "copy or download it again"


def is_idx(path: str) -> bool:
    """Return whether a file starts like an IDX file, which no text does."""
    if not os.path.isfile(path):
        return False
    with readable_os_errors(path), open_bytes(path) as stream:
        return _header(stream.read(4)) is not None


def _header(data: bytes) -> tuple[str, int] | None:
    """Return type and number of dimensions of the first bytes; None if they are not of IDX."""
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in TYPES:
        return None
    return (TYPES[data[2]], data[3]) if 1 <= data[3] <= MAX_DIMENSIONS else None


class IdxFile:
    """An IDX file whose header is read and checked when it is opened, and whose numbers later.

    images: whether it should have images; otherwise, it should have labels.
    """

    def __init__(self, path: str, images: bool) -> None:
        self.path = path
        if not os.path.exists(path):
            raise UserError(missing_file(path))
        with readable_os_errors(path), open_bytes(path) as stream:
            self.type, self.shape = self._read_header(stream)
        what, dimensions = ("images", (3, 4)) if images else ("labels", (1, 2))
        if len(self.shape) not in dimensions:
            raise UserError(
                f"{path}: expected {what} with {dimensions[0]} or {dimensions[1]} dimensions, "
                f"found shape {self.shape}",
                help="pass the images as --source and the labels as --target",
            )
        if images:
            check_shape(self.shape, path)
        check_bytes(path, self.shape, np.dtype(self.type).itemsize)

    def _read_header(self, stream: BinaryIO) -> tuple[str, tuple[int, ...]]:
        found = _header(stream.read(4))
        if found is None:
            raise UserError(
                f"{self.path}: expected an IDX file, found other data",
                help="pass the IDX files of images and labels as --source and --target",
            )
        kind, dimensions = found
        sizes = stream.read(4 * dimensions)
        if len(sizes) < 4 * dimensions:
            raise UserError(f"{self.path}: truncated IDX file: no complete header", help=AGAIN)
        return kind, struct.unpack(f">{dimensions}I", sizes)

    def read(self) -> np.ndarray:
        """Return the numbers as an array with the shape in the header."""
        type = np.dtype(self.type)
        expected = math.prod(self.shape) * type.itemsize
        data = bytearray()
        with readable_os_errors(self.path), open_bytes(self.path) as stream:
            self._read_header(stream)
            while len(data) <= expected and (block := stream.read(BLOCK)):
                data += block
        if len(data) != expected:
            more = "more" if len(data) > expected else f"{len(data):,}"
            raise UserError(
                f"{self.path}: corrupted or truncated IDX file: expected {expected:,} bytes for "
                f"shape {self.shape}, found {more}",
                help=AGAIN,
            )
        return (
            np.frombuffer(data, type).reshape(self.shape).astype(type.newbyteorder("="), copy=False)
        )

    def images(self) -> tuple[list[Image], list[str]]:
        """Return the images, and notes."""
        return to_images(self.read(), self.path, Path(self.path).name)


def read_arrays(
    path: str, column: str | None, trained: str | None = None
) -> tuple[list[Image], list[str]]:
    """Return the images of an NPZ or IDX file without their targets, and notes.

    column: name of the array in an NPZ file, if the user chose one. trained: name of that of the
    training data, which this file need not have.
    """
    if not is_npz(path):
        return IdxFile(path, images=True).images()
    arrays = NpzArrays(path)
    return arrays.images(arrays.find(column, (trained, *IMAGES) if trained else IMAGES))


def read_idx(source: str, target: str) -> Pairs:
    """Return the images of one IDX file, each with its label or numbers in another."""
    files = IdxFile(source, images=True), IdxFile(target, images=False)
    images, notes = files[0].images()
    return array_pairs(source, images, files[1].read(), (source, target), ["read as IDX", *notes])
