"""Images in figures. H height, W width, C channels."""

from typing import TYPE_CHECKING

import numpy as np

from regard.views.figures.style import hide_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def show_pixels(axes: "Axes", pixels: np.ndarray) -> None:
    """Plot an image, without smoothing."""
    shown = pixels if pixels.shape[2] >= 3 else pixels[..., 0]
    axes.imshow(shown, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    hide_frame(axes)
    axes.set_xticks([])
    axes.set_yticks([])
