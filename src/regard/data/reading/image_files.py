"""Read images from files."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from regard.core.errors import UserError
from regard.core.formatting import size
from regard.data.reading.images import Image
from regard.data.reading.lines import missing_file, readable_os_errors
from regard.data.reading.media import Medium
from regard.data.reading.pillow_images import SUFFIXES, decode_image, from_object

BLOCK = 1 << 20  # bytes read at once
MAX_FILE = 256 * 1024**2  # bytes of an image file


def read_image(path: str, changes: Counter[str] | None = None) -> Image:
    """Return the image in a file. changes: counts what was converted."""
    if not Path(path).exists():
        raise UserError(missing_file(path))
    if Path(path).is_dir():
        raise UserError(
            f"{path}: expected an image, found a folder",
            help="name a file; `regard predict RUN --input FOLDER` reads all files of a folder",
        )
    data = bytearray()
    with readable_os_errors(path), open(path, "rb") as stream:
        while len(data) <= MAX_FILE and (block := stream.read(BLOCK)):
            data += block
    if len(data) > MAX_FILE:
        raise UserError(
            f"{path}: expected an image of at most {size(MAX_FILE)}", help="scale the image down"
        )
    return decode_image(bytes(data), path, changes)


IMAGES = Medium(
    name="image",
    columns=frozenset({"image", "picture", "photo", "img"}),
    suffixes=SUFFIXES,
    start=re.compile(rb"\x89PNG|\xff\xd8\xff|GIF8|II\*\0|MM\0\*|RIFF.{4}WEBP", re.DOTALL),
    read=read_image,
    type=Image,
    convert=from_object,
    reduce="resize the images as they are read: --set task.source.size=64,64",
)
