"""Images as sources: a grid of pixels, from a file, from bytes or from an array.

H height, W width, C channels.
"""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections import Counter
from functools import cached_property
from typing import Any

import numpy as np

from regard.core.errors import UserError
from regard.core.formatting import count_noun
from regard.data.reading.image_media import FORMATS, check_media
from regard.data.reading.media_source import MediaSource

MAX_PIXELS = 1 << 26  # of one image, about 8,000 x 8,000
MAX_SIDE = 1 << 16
PIXELS = re.compile(r"\((\d+) pixels\)")  # in errors of Pillow
INSTALL = "pip install 'regard[image]'"
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm"})
SUFFIXES |= {".pgm", ".pbm"}
BY_SUFFIX = {
    **{".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF"},
    **{".pgm": "PPM", ".pbm": "PPM"},
}
GRAYSCALE = ("1", "L", "I", "F", "I;16", "I;16B", "I;16L", "I;16N")  # modes of Pillow


class Image(MediaSource):
    """A source that is an image: pixels (H, W, C), uint8, and a name for messages.

    changes: what was converted when it was read. Two images with the same pixels are equal,
    whatever their names.
    """

    def __init__(self, pixels: np.ndarray, name: str, changes: tuple[str, ...] = ()) -> None:
        assert pixels.ndim == 3 and pixels.dtype == np.uint8
        self.pixels = pixels
        self.name = name
        self.changes = changes

    @cached_property
    def digest(self) -> bytes:
        """Return a hash of shape and pixels."""
        found = hashlib.blake2b(repr(self.pixels.shape).encode(), digest_size=16)
        found.update(np.ascontiguousarray(self.pixels).data)
        return found.digest()

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return height, width and channels."""
        height, width, channels = self.pixels.shape
        return height, width, channels

    @property
    def nbytes(self) -> int:
        """Return the size of the pixels in memory."""
        return self.pixels.nbytes

    def __len__(self) -> int:
        return self.pixels.size

    def __repr__(self) -> str:
        """Return shape and hash, which determine the split into training and dev set."""
        return f"Image({show_shape(self.shape)}, {self.digest.hex()})"


def show_shape(shape: tuple[int, int, int]) -> str:
    """Return height, width and channels for messages, as `28x28, 1 channel`."""
    return f"{show_size(shape)}, {show_channels(shape)}"


def show_size(shape: tuple[int, int, int]) -> str:
    """Return height and width for messages, as `28x28`."""
    return f"{shape[0]}x{shape[1]}"


def show_channels(shape: tuple[int, int, int]) -> str:
    """Return the number of channels for messages, as `1 channel`."""
    return count_noun(shape[2], "channel")


def check_size(where: str, height: int, width: int) -> None:
    """Raise UserError for an image that is empty or too large. where: name, for the message."""
    if min(height, width) < 1:
        raise UserError(f"{where}: image of {height} x {width} pixels: expected at least 1 x 1")
    if height * width > MAX_PIXELS or max(height, width) > MAX_SIDE:
        raise UserError(
            f"{where}: image of {height:,} x {width:,} pixels: expected at most {MAX_PIXELS:,} "
            f"pixels and {MAX_SIDE:,} per side",
            help="scale the image down",
        )


def from_array(array: Any, name: str) -> Image:
    """Return the image of an array (H, W) or (H, W, C): uint8, or floats from 0 to 1."""
    pixels = np.asarray(array)
    if pixels.ndim not in (2, 3):
        raise UserError(f"{name}: expected an array (H, W) or (H, W, C), found {pixels.shape}")
    pixels = as_bytes(pixels, name)
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    check_channels(pixels.shape, name)
    check_size(name, *pixels.shape[:2])
    return Image(pixels, name)


def from_object(value: Any, name: str) -> Image | None:
    """Return the image of an array, tensor or Pillow image; None for other objects."""
    if isinstance(value, Image):
        return value
    if hasattr(value, "getexif") and hasattr(value, "mode"):  # Pillow, which is not imported
        found: Counter[str] = Counter()
        pixels = _pixels(value, found)
        check_size(name, *pixels.shape[:2])
        return Image(pixels, name, tuple(found))
    if not hasattr(value, "__array__"):
        return None
    array = np.asarray(value)
    return from_array(array, name) if array.ndim > 1 else None


def check_channels(shape: tuple[int, ...], name: str) -> None:
    """Raise UserError unless the last dimension of a shape is a number of channels."""
    if shape[-1] not in (1, 2, 3, 4):
        hint = "move the channels to the end: np.moveaxis(images, 1, -1)"
        raise UserError(
            f"{name}: expected 1 to 4 channels as last dimension, found shape {tuple(shape)}",
            help=hint if len(shape) > 2 and shape[-3] in (1, 3) else "",
        )


def as_bytes(pixels: np.ndarray, name: str) -> np.ndarray:
    """Return pixels as uint8: floats from 0 to 1 times 255, booleans as 0 and 255."""
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype == np.bool_:
        return pixels.astype(np.uint8) * np.uint8(255)
    if pixels.dtype.kind not in "iuf":
        raise UserError(f"{name}: expected numbers, found {pixels.dtype}")
    low, high = (pixels.min(), pixels.max()) if pixels.size else (0, 0)
    if np.issubdtype(pixels.dtype, np.integer):
        if low >= 0 and high <= 255:
            return pixels.astype(np.uint8)
        raise UserError(f"{name}: expected integers from 0 to 255, found {low} to {high}")
    if np.isnan(low):
        raise UserError(f"{name}: expected finite numbers, found NaN")
    if not (low >= 0 and high <= 1):
        raise UserError(
            f"{name}: expected floats from 0 to 1, found {low:g} to {high:g}",
            help="divide by the largest value, or convert to uint8 (0 to 255)",
        )
    return np.rint(pixels * 255).astype(np.uint8)


def decode_image(
    data: bytes, name: str, changes: Counter[str] | None = None, media: str | None = None
) -> Image:
    """Return the image in the bytes of a file. Needs Pillow.

    Size and format are checked before pixels are decoded. changes: counts what was converted.
    media: the MIME type that the file must have.
    """
    found: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the size is checked here
        opened = open_image(data, name, media)
        _count_mislabeled(opened.format, name, found)
        try:
            pixels = _pixels(opened, found)
        except MemoryError:
            raise
        except Exception as error:  # Pillow raises OSError, SyntaxError, ValueError, struct.error
            raise UserError(
                f"{name}: corrupted or truncated {opened.format} file: {error}",
                help="copy or export the image again",
            ) from None
    if changes is not None:
        changes.update(found)
    return Image(pixels, name, tuple(found))


def open_image(data: bytes, name: str, media: str | None = None) -> Any:
    """Return the image in the bytes of a file as Pillow opens it: header read, pixels not decoded.

    Raise UserError if it is no image, too large or of another MIME type than `media`.
    """
    pillow = import_pillow(name)
    if not data:
        raise UserError(f"{name}: the file is empty: expected an image")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            opened = pillow.open(io.BytesIO(data), formats=FORMATS)
        except Exception as error:
            raise _unreadable(data, name, error) from None
    check_media(opened.format, media, name)
    check_size(name, opened.height, opened.width)
    return opened


def import_pillow(name: str) -> Any:
    """Return `PIL.Image`; raise UserError if Pillow is not installed. name: file, for the error."""
    try:
        from PIL import Image as pillow
    except ImportError:
        raise UserError(
            f"{name}: images in files need the package Pillow, which is not installed", help=INSTALL
        ) from None
    return pillow


def _unreadable(data: bytes, name: str, error: Exception) -> UserError:
    """Return the error for bytes that are no image of a known format."""
    kind = type(error).__name__
    if kind == "DecompressionBombError":
        count = PIXELS.search(str(error))
        size = f"image of {int(count[1]):,} pixels" if count else "image too large"
        return UserError(
            f"{name}: {size}: expected at most {MAX_PIXELS:,} pixels", help="scale the image down"
        )
    try:
        data[:512].decode()
        found = "text" if b"\0" not in data[:512] else "other data"
    except UnicodeDecodeError:
        found = "other data, or a corrupted file"
    return UserError(
        f"{name}: expected an image ({', '.join(FORMATS)}), found {found}",
        help="convert the file, or remove it from the data",
    )


def _count_mislabeled(found: str, name: str, changes: Counter[str]) -> None:
    """Count an image whose format differs from its file name suffix."""
    suffix = f".{name.rpartition('.')[2].lower()}"
    if suffix in SUFFIXES and BY_SUFFIX.get(suffix, suffix[1:].upper()) != found:
        changes[f"images named {suffix}, read as {found}"] += 1


def _pixels(opened: Any, changes: Counter[str]) -> np.ndarray:
    """Return the pixels (H, W, C) of an opened image, as grayscale or RGB."""
    from PIL import ImageOps

    if getattr(opened, "n_frames", 1) > 1:
        changes["animated or multi-page images, only the first frame read"] += 1
        opened.seek(0)
    if opened.getexif().get(0x0112, 1) != 1:
        changes["images rotated as their EXIF orientation says"] += 1
    mode = opened.mode
    opened = ImageOps.exif_transpose(opened)
    if mode in GRAYSCALE[2:]:
        return _scale_down(np.asarray(opened), mode, changes)
    if mode in ("LA", "La", "RGBA", "RGBa", "PA") or "transparency" in opened.info:
        changes["images with transparency, placed on a white background"] += 1
        gray = mode in ("LA", "La")
        opened = opened.convert("RGBA")
        background = _white(opened.size)
        background.alpha_composite(opened)
        opened = background.convert("L" if gray else "RGB")
    elif mode == "P":
        changes["palette images converted to RGB"] += 1
        opened = opened.convert("RGB")
    elif mode == "1":
        opened = opened.convert("L")
    elif mode not in ("L", "RGB"):
        changes[f"{mode} images converted to RGB"] += 1
        opened = opened.convert("RGB")
    pixels = np.asarray(opened, np.uint8)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def _white(size: tuple[int, int]) -> Any:
    """Return a white, opaque RGBA image of Pillow."""
    from PIL import Image as pillow

    return pillow.new("RGBA", size, (255, 255, 255, 255))


def _scale_down(values: np.ndarray, mode: str, changes: Counter[str]) -> np.ndarray:
    """Return grayscale values of more than 8 bits as uint8 (H, W, 1): the upper 8 of 16 bits."""
    if mode == "F":
        return as_bytes(values, "float image")[..., None]
    if values.max(initial=0) > 0xFFFF or values.min(initial=0) < 0:
        raise ValueError(f"expected values of at most 16 bits, found {values.max()}")
    changes["16-bit images reduced to 8 bits"] += 1
    return (values >> 8).astype(np.uint8)[..., None]


def convert(image: Image, size: tuple[int, int], channels: int) -> Image:
    """Return an image resized to (height, width), as grayscale (1 channel) or RGB (3)."""
    pillow = import_pillow(image.name)
    pixels, changes = image.pixels, list(image.changes)
    if pixels.shape[2] in (2, 4):  # without alpha
        pixels = pixels[..., :-1]
    opened = pillow.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    if channels != pixels.shape[2]:
        mode = "L" if channels == 1 else "RGB"
        opened = opened.convert(mode)
        changes.append(f"images converted to {'grayscale' if channels == 1 else mode}")
    if pixels.shape[:2] != size:
        opened = opened.resize(size[::-1], pillow.Resampling.BILINEAR)
        changes.append(f"images resized to {size[0]}x{size[1]}")
    found = np.asarray(opened, np.uint8)
    return Image(found[..., None] if found.ndim == 2 else found, image.name, tuple(changes))
