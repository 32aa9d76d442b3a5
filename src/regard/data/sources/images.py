"""Open images with their targets, from any of the formats that contain images."""

from __future__ import annotations

from regard.data.reading.image_arrays import is_npz, read_npz
from regard.data.reading.read import Pair, Pairs
from regard.data.sources.open import DataSpec


def read_images(spec: DataSpec) -> Pairs | None:
    """Return the images that the user passed with their targets; None if it is other data.

    Targets are tuples of texts or numbers, as stored in the files.
    """
    if spec.data and is_npz(spec.data):
        return read_npz(spec.data, spec.source_column, spec.target_column)
    return None


def with_labels(images: Pairs) -> Pairs:
    """Return the images with labels as targets: a tuple of texts."""
    pairs = [Pair(one.source, tuple(map(str, one.target)), one.line) for one in images.pairs]
    return Pairs(images.name, images.path, pairs, images.notes)


def with_numbers(images: Pairs) -> Pairs:
    """Return the images with numbers as targets."""
    pairs = [Pair(one.source, tuple(map(float, one.target)), one.line) for one in images.pairs]
    return Pairs(images.name, images.path, pairs, images.notes)
