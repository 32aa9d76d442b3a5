"""Plot of sinusoidal positional encodings."""

from typing import TYPE_CHECKING

from regard.nn.positions.sinusoidal import sinusoids
from regard.views.figures.style import hide_frame, new_figure, panels
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LENGTH, WIDTH = 96, 64


def plot_positions(args: PlotArgs) -> "Figure":
    """Plot the positional encodings and their pairwise similarity."""
    table = sinusoids(LENGTH, WIDTH)  # (T, D)
    similarity = table @ table.T / (WIDTH / 2)  # 1 on the diagonal: sin^2 + cos^2
    figure = new_figure(9.2, 4.2, "Sinusoidal positional encodings")
    left, right = panels(figure, 1, 2, width_ratios=[WIDTH, LENGTH])
    shown = left.imshow(table.numpy(), cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    left.set_title("Positional encoding")
    left.set_xlabel("dimension")
    left.set_ylabel("position")
    figure.colorbar(shown, ax=left, ticks=[-1, 0, 1]).outline.set_visible(False)
    shown = right.imshow(similarity.numpy(), cmap="viridis", vmax=1, aspect="equal")
    right.set_title("Similarity of positions")
    right.set_xlabel("position")
    right.set_ylabel("position")
    bar = figure.colorbar(shown, ax=right, ticks=[0, 0.5, 1])
    bar.outline.set_visible(False)
    bar.set_label("normalized dot product")
    for axes in (left, right):
        hide_frame(axes)
    return figure
