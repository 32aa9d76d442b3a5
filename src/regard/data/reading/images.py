"""Images as sources: a grid of pixels, such as an array. `pillow_images.py` reads files.

H height, W width, C channels.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

import numpy as np

from regard.core.errors import UserError
from regard.core.formatting import count_noun
from regard.data.reading.media_source import MediaSource

MAX_PIXELS = 1 << 26  # of one image, about 8,000 x 8,000
MAX_SIDE = 1 << 16


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
