"""Sinusoidal positions, as a Transformer adds them."""

from typing import TYPE_CHECKING

from regard.nn.positions import sinusoids
from regard.views.figures.style import hide_frame, new_figure, panels
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LENGTH, WIDTH = 96, 64


def draw(wish: PlotArgs) -> "Figure":
    """The table of positions, and how alike any two of them are."""
    table = sinusoids(LENGTH, WIDTH)  # (T, D)
    alike = table @ table.T / (WIDTH / 2)  # 1 where both are the same: sin^2 + cos^2
    figure = new_figure(9.2, 4.2, "Sinusoidal positions")
    left, right = panels(figure, 1, 2, width_ratios=[WIDTH, LENGTH])
    shown = left.imshow(table.numpy(), cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    left.set_title("What is added to a vector")
    left.set_xlabel("number in the vector")
    left.set_ylabel("position")
    figure.colorbar(shown, ax=left, ticks=[-1, 0, 1]).outline.set_visible(False)
    shown = right.imshow(alike.numpy(), cmap="viridis", vmax=1, aspect="equal")
    right.set_title("How alike two positions are")
    right.set_xlabel("position")
    right.set_ylabel("position")
    bar = figure.colorbar(shown, ax=right, ticks=[0, 0.5, 1])
    bar.outline.set_visible(False)
    bar.set_label("dot product, 1 for a position with itself")
    for axes in (left, right):
        hide_frame(axes)
    return figure
