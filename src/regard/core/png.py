"""Images as PNG files and data URLs, without further packages. H height, W width, C channels."""

import base64
import struct
import zlib

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # by channels: grayscale, RGB, each also with alpha
MAX_THUMBNAIL = 64  # pixels per side


def encode_png(pixels: np.ndarray) -> bytes:
    """Return the PNG file of pixels (H, W, C), uint8, with 1 to 4 channels."""
    height, width, channels = pixels.shape
    rows = np.ascontiguousarray(pixels).reshape(height, width * channels)
    filtered = np.concatenate([np.zeros((height, 1), np.uint8), rows], 1)  # filter type 0
    header = struct.pack(">IIBBBBB", width, height, 8, COLOR_TYPES[channels], 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(filtered.tobytes(), 9)), (b"IEND", b"")]
    return SIGNATURE + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)


def thumbnail_url(pixels: np.ndarray) -> str:
    """Return pixels (H, W, C) as the data URL of a PNG file, reduced to `MAX_THUMBNAIL` pixels."""
    step = -(-max(pixels.shape[:2]) // MAX_THUMBNAIL)
    if step > 1:  # the mean of each block
        height, width = (size // step * step or size for size in pixels.shape[:2])
        blocks: np.ndarray = pixels[:height, :width].astype(np.float64)
        for axis, size in ((0, height), (1, width)):
            starts = np.arange(0, size, step)
            counts = np.diff([*starts, size]).reshape([-1 if n == axis else 1 for n in range(3)])
            blocks = np.add.reduceat(blocks, starts, axis) / counts
        pixels = np.rint(blocks).astype(np.uint8)
    return f"data:image/png;base64,{base64.b64encode(encode_png(pixels)).decode('ascii')}"
