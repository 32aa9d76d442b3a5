"""Drawn images for tests: a bright square whose corner depends on the class; files of them."""

import gzip
import struct
from pathlib import Path

import numpy as np
from PIL import Image

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def draw(label: int, seed: int, size: tuple[int, int] = (8, 8), channels: int = 1) -> np.ndarray:
    """Return an image (H, W) or (H, W, C): noise, and a square in corner `label` of four."""
    random = np.random.default_rng(1000 * label + seed)
    pixels = random.integers(0, 60, (*size, channels)).astype(np.uint8)
    top, left = divmod(label, 2)
    height, width = size[0] // 2, size[1] // 2
    pixels[top * height : (top + 1) * height, left * width : (left + 1) * width] += 150
    return pixels[..., 0] if channels == 1 else pixels


def write(path: Path, pixels: np.ndarray) -> Path:
    """Write an image, in the format of the suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
    return path


def by_class(folder: Path, count: int = 5, names: tuple[str, ...] = ("cat", "dog")) -> Path:
    """Write a folder with one subfolder per class."""
    for label, name in enumerate(names):
        for number in range(count):
            write(folder / name / f"{number}.png", draw(label, number))
    return folder


def idx(array: np.ndarray) -> bytes:
    """Return an array as IDX: two zeros, type, dimensions, big-endian sizes and numbers."""
    code = CODES[array.dtype.str[1:]]
    header = struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim, *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


def write_idx(path: Path, array: np.ndarray | bytes) -> str:
    data = array if isinstance(array, bytes) else idx(array)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)
