"""A plot of drawn scenes with their captions."""

import textwrap
from typing import TYPE_CHECKING

from regard.data.sources.scenes import SEED, scenes
from regard.views.figures.style import FAINT, hide_frame, new_figure, panels
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS, COLUMNS, CAPTION_WIDTH = 2, 5, 22


def plot_scenes(args: PlotArgs) -> "Figure":
    """Plot the first drawn scenes, each with one of its two captions."""
    figure = new_figure(9.2, 4.9, "Drawn scenes and captions: the built-in data `scenes`")
    drawn = scenes(ROWS * COLUMNS, SEED)
    cells = zip(panels(figure, ROWS, COLUMNS), drawn.images, drawn.captions, strict=True)
    for axes, image, (caption, _) in cells:
        axes.imshow(image, interpolation="nearest")
        hide_frame(axes)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_xlabel(textwrap.fill(caption, CAPTION_WIDTH), fontsize=8.5, color=FAINT)
    return figure
