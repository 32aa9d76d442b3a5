"""Images that Pillow reads: decode files, and convert size and channels.

H height, W width, C channels.
"""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from typing import Any

import numpy as np

from regard.core.errors import UserError
from regard.data.reading.image_media import FORMATS, check_media
from regard.data.reading.images import MAX_PIXELS, Image, as_bytes, check_size, from_array

PIXELS = re.compile(r"\((\d+) pixels\)")  # in errors of Pillow
AGAIN = "copy or export the image again"
INSTALL = "pip install 'regard[image]'"
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm"})
SUFFIXES |= {".pgm", ".pbm"}
BY_SUFFIX = {
    **{".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF"},
    **{".pgm": "PPM", ".pbm": "PPM"},
}
REDUCED = "16-bit images reduced to 8 bits"
GRAYSCALE = ("1", "L", "I", "F", "I;16", "I;16B", "I;16L", "I;16N")  # modes of Pillow


def from_object(value: Any, name: str) -> Image | None:
    """Return the image of an array, tensor or Pillow image; None for other objects."""
    if isinstance(value, Image):
        return value
    if hasattr(value, "getexif") and hasattr(value, "mode"):  # Pillow, which is not imported
        found: Counter[str] = Counter()
        pixels = _pixels(value, name, found)
        check_size(name, *pixels.shape[:2])
        return Image(pixels, name, tuple(found))
    if not hasattr(value, "__array__"):
        return None
    array = np.asarray(value)
    return from_array(array, name) if array.ndim > 1 else None


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
            pixels = _pixels(opened, name, found)
        except (MemoryError, UserError):
            raise
        except Exception as error:  # Pillow raises OSError, SyntaxError, ValueError, struct.error
            raise UserError(
                f"{name}: corrupted or truncated {opened.format} file: {error}",
                help=AGAIN,
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
        raise UserError(f"{name}: the file is empty: expected an image", help=AGAIN)
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


def _pixels(opened: Any, name: str, changes: Counter[str]) -> np.ndarray:
    """Return the pixels (H, W, C) of an opened image, as grayscale or RGB."""
    from PIL import ImageOps

    stored = _stored_mode(opened)
    if getattr(opened, "n_frames", 1) > 1:
        changes["animated or multi-page images, only the first frame read"] += 1
        opened.seek(0)
    if opened.getexif().get(0x0112, 1) != 1:
        changes["images rotated as their EXIF orientation says"] += 1
    mode = opened.mode
    opened = ImageOps.exif_transpose(opened)
    if mode in GRAYSCALE[2:]:
        return _scale_down(np.asarray(opened), name, changes)
    if ";16" in stored:
        changes[REDUCED] += 1
    if mode in ("LA", "La", "RGBA", "RGBa", "PA") or "transparency" in opened.info:
        changes["images with transparency, placed on a white background"] += 1
        gray = mode in ("1", "L", "LA", "La") or stored.startswith("LA")
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


def _stored_mode(opened: Any) -> str:
    """Return the mode in which the file of an image stores its pixels, such as `RGB;16B`.

    Pillow reads 16 bits per color as 8, and 16-bit grayscale with transparency as RGBA. Pixels must
    not be decoded yet. Empty: unknown.
    """
    tiles = getattr(opened, "tile", ())
    if not tiles:
        return ""
    decoder, options = tiles[0][0], tiles[0][3]
    mode, *others = (options,) if isinstance(options, str) else options or ("",)
    is_wide = decoder.startswith("ppm") and any(largest > 255 for largest in others)
    return f"{mode};16B" if is_wide else str(mode)


def _white(size: tuple[int, int]) -> Any:
    """Return a white, opaque RGBA image of Pillow."""
    from PIL import Image as pillow

    return pillow.new("RGBA", size, (255, 255, 255, 255))


def _scale_down(values: np.ndarray, name: str, changes: Counter[str]) -> np.ndarray:
    """Return grayscale values of more than 8 bits as uint8 (H, W, 1): the upper 8 of 16 bits."""
    if values.dtype.kind == "f":
        return as_bytes(values, name)[..., None]
    low, high = values.min(initial=0), values.max(initial=0)
    if low < 0 or high > 0xFFFF:
        raise UserError(
            f"{name}: expected integers from 0 to 65,535 (16 bits), found {low} to {high}",
            help="convert the image to 8 or 16 bits",
        )
    changes[REDUCED] += 1
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
