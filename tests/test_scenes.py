"""Drawn scenes: captions are correct, sets are disjoint, and the drawing is always the same."""

import numpy as np
import pytest

from regard.config.defaults import fill_defaults
from regard.config.load import check_config
from regard.core.data_stats import DataStats
from regard.data.sources.builtin import builtin
from regard.data.sources.scenes import COLORS, OPPOSITE, SIDE, SIZES, scenes


def center(image: np.ndarray, color: str) -> np.ndarray:
    """The mean row and column of the pixels near a color."""
    distance = np.abs(image.astype(int) - np.array(COLORS[color])).sum(-1)
    found = np.argwhere(distance < 70)
    assert len(found) > 8
    mean: np.ndarray = found.mean(0)
    return mean


def relation(first: np.ndarray, second: np.ndarray) -> str:
    """The relation that holds along the axis of the larger distance."""
    down, right = first - second
    if abs(right) > abs(down):
        return "right of" if right > 0 else "left of"
    return "below" if down > 0 else "above"


def test_captions_name_what_is_drawn() -> None:
    found = scenes(200, seed=7)
    assert found.images.shape == (200, SIDE, SIDE, 3) and found.images.dtype == np.uint8
    checked = 0
    for image, (caption, other) in zip(found.images, found.captions, strict=True):
        words, others = caption.split(), other.split()
        how = " ".join(words[3:-3])
        assert others == [*words[-3:], *OPPOSITE[how].split(), *words[:3]]
        assert words[:3] != words[-3:]
        if words[1] != words[-2]:  # colors that differ are found in the image
            checked += 1
            assert relation(center(image, words[1]), center(image, words[-2])) == how
    assert checked > 100


def test_all_shapes_are_inside_the_image() -> None:
    """The background reaches around: no shape touches the border of the image."""
    images = scenes(100, seed=3).images.astype(int)
    border = np.concatenate(
        [images[:, 0], images[:, -1], images[:, :, 0], images[:, :, -1]], axis=1
    )
    gray = border.max(-1) - border.min(-1)  # the background has no color, but noise
    assert np.median(gray) < 25 and (gray > 90).mean() < 0.02


def test_splits_are_disjoint_and_repeat() -> None:
    splits = builtin("scenes")
    parts = {"train": splits.train, "dev": splits.dev, "test": splits.test}
    images = {name: {pair.source for pair in pairs} for name, pairs in parts.items()}
    assert {name: len(found) for name, found in images.items()} == SIZES
    assert len(set.union(*images.values())) == sum(SIZES.values())
    assert all(len(pairs) == 2 * SIZES[name] for name, pairs in parts.items())
    assert np.array_equal(scenes(20, 1).images, scenes(20, 1).images)
    assert scenes(20, 1).captions != scenes(20, 2).captions


@pytest.mark.parametrize(("grid", "expected"), [((SIDE, SIDE), True), ((0, 0), False)])
def test_input_feeding_is_the_default_for_images(grid: tuple[int, int], expected: bool) -> None:
    config = check_config({"model": {"decoder": "recurrent"}}, "test")
    source = "image" if any(grid) else "text"
    stats = DataStats(1000, 9000, 50, False, grid=grid, source=source)
    filled, chosen = fill_defaults(config, stats)
    assert filled.model.decoder.input_feeding is expected
    assert "model.decoder.input_feeding" in {one.key for one in chosen}
