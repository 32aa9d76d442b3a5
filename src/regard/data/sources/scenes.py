"""The built-in dataset `scenes`: drawn images of two shapes, and captions that describe them.

N images, H height and W width.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from regard.data.reading.images import Image
from regard.data.reading.read import Pair

SEED = 1
SIZES = {"train": 12_000, "dev": 500, "test": 500}  # images
SIDE = 32  # pixels
SHAPES = ("circle", "square", "triangle", "cross")
COLORS = {
    "red": (210, 40, 40),
    "green": (40, 160, 60),
    "blue": (50, 80, 210),
    "yellow": (235, 205, 50),
    "purple": (150, 60, 180),
    "white": (245, 245, 245),
}
RELATIONS = ("left of", "right of", "above", "below")
OPPOSITE = dict(zip(RELATIONS, ("right of", "left of", "below", "above"), strict=True))
AXES = np.array([[0, -1], [0, 1], [-1, 0], [1, 0]])  # (row, column) of the first shape
RADIUS = (3.5, 5.5)  # pixels
GAP, SKEW = 2.0, 0.45  # pixels between the shapes; offset across, as a fraction of the distance
NOISE = 6.0  # deviation of the noise of each pixel


class Scenes(NamedTuple):
    """Drawn scenes. images: (N, H, W, 3). captions: two per image, one for each direction."""

    images: np.ndarray
    captions: list[tuple[str, str]]


def scenes(count: int, seed: int) -> Scenes:
    """Return scenes that depend only on the seed."""
    random = np.random.default_rng(seed)
    shape = random.integers(len(SHAPES), size=(count, 2))
    color = random.integers(len(COLORS), size=(count, 2))
    same = (shape[:, 0] == shape[:, 1]) & (color[:, 0] == color[:, 1])
    color[same, 1] = (color[same, 1] + random.integers(1, len(COLORS), same.sum())) % len(COLORS)
    relation = random.integers(len(RELATIONS), size=count)
    radius = random.uniform(*RADIUS, size=(count, 2))
    centers = _place(random, relation, radius)
    shade = random.uniform(20, 110, size=(count, 1, 1, 1))  # of the background
    pixels = np.tile(shade.astype(np.float32), (1, SIDE, SIDE, 3))
    colors = np.array(list(COLORS.values()), np.float32)
    for one in range(2):
        cover = _cover(shape[:, one], centers[:, one], radius[:, one])[..., None]
        pixels += cover * (colors[color[:, one]][:, None, None] - pixels)
    pixels += NOISE * random.standard_normal(pixels.shape, np.float32)
    names = [(_names(shape[i], color[i]), RELATIONS[relation[i]]) for i in range(count)]
    captions = [(f"{a} {how} {b}", f"{b} {OPPOSITE[how]} {a}") for (a, b), how in names]
    return Scenes(np.clip(pixels, 0, 255, out=pixels).astype(np.uint8), captions)


def _names(shape: np.ndarray, color: np.ndarray) -> tuple[str, str]:
    """Return the names of both shapes, such as "a red circle"."""
    kinds = list(COLORS)
    first, second = (f"a {kinds[c]} {SHAPES[s]}" for s, c in zip(shape, color, strict=True))
    return first, second


def _place(random: np.random.Generator, relation: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """Return the centers (N, 2, 2), as row and column, so that only one relation holds."""
    count, axis = len(relation), AXES[relation]
    total = radius.sum(1)
    room = SIDE - 1 - total  # largest distance of the centers along the axis
    distance = random.uniform(total + GAP, np.maximum(total + GAP, room))
    across = random.uniform(-SKEW, SKEW, size=count) * distance
    offset = axis * distance[:, None] + (axis == 0) * across[:, None]  # of the first shape
    reach = radius[:, :, None]
    low = np.maximum(reach[:, 1], reach[:, 0] - offset)  # of the second center
    high = SIDE - 1 - np.maximum(reach[:, 1], reach[:, 0] + offset)
    second = low + random.random((count, 2)) * np.maximum(high - low, 0)
    return np.stack([second + offset, second], 1)


def _cover(shape: np.ndarray, center: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """Return how much of each pixel (N, H, W) a shape covers, from its signed distance."""
    found = np.zeros((len(shape), SIDE, SIDE), np.float32)
    steps = np.arange(SIDE, dtype=np.float32)
    for kind, name in enumerate(SHAPES):
        rows = np.flatnonzero(shape == kind)
        at = center[rows].astype(np.float32)
        y, x = steps[:, None] - at[:, 0, None, None], steps[None, :] - at[:, 1, None, None]
        r = radius[rows, None, None].astype(np.float32)
        found[rows] = np.clip(0.5 - _distance(name, x, y, r), 0, 1)
    return found


def _distance(name: str, x: np.ndarray, y: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Return the signed distance of points to the border of a shape of radius r around 0."""
    across, above = np.abs(x), np.abs(y)
    if name == "circle":
        return np.sqrt(x * x + y * y) - r
    if name == "square":
        return np.maximum(across, above) - 0.88 * r
    if name == "triangle":
        return np.maximum(y - 0.75 * r, (2 * across - y - 1.05 * r) / np.float32(np.sqrt(5)))
    return np.maximum(np.minimum(across, above) - 0.35 * r, np.maximum(across, above) - r)


def scene_pairs() -> tuple[dict[str, list[Pair]], list[str]]:
    """Return the pairs of each split, and notes. Two pairs per image, one for each caption."""
    total = sum(SIZES.values())
    images, captions = scenes(total, SEED)
    found: dict[str, list[Pair]] = {}
    start = 0
    for name, count in SIZES.items():
        found[name] = [
            Pair(Image(images[i], f"scene {i + 1}"), caption, i + 1)
            for i in range(start, start + count)
            for caption in captions[i]
        ]
        start += count
    note = f"scenes: drew {total:,} images of {SIDE} x {SIDE} pixels, each with two captions"
    return found, [note]
