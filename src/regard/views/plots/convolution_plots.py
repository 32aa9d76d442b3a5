"""Plots of convolutions on a grid: where a kernel stops, and how receptive fields grow."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from regard.config.load import load_config
from regard.nn.convolution import BlockOptions, MapShape, network_layers, output_size
from regard.views.figures.style import COLORS, FAINT, GRID, INK, add_subtitle, new_figure, panels
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RECIPES = ("lenet", "vgg", "resnet", "googlenet")
IMAGE = MapShape(1, 28, 28)


class Setting(NamedTuple):
    """A layer on a small grid. n: cells. f: size. p: padding. s: stride."""

    n: int
    f: int
    p: int
    s: int


SETTINGS = (Setting(7, 3, 0, 1), Setting(7, 3, 0, 2), Setting(7, 3, 1, 1), Setting(7, 3, 1, 2))


def plot_sizes(args: PlotArgs) -> "Figure":
    """Plot the stops of a kernel on a grid, with stride 1 and 2, with and without padding."""
    figure = new_figure(9.2, 3.1, "Stops of a kernel: output size = (n + 2p - f) / s + 1")
    for axes, setting in zip(panels(figure, 1, len(SETTINGS)), SETTINGS, strict=True):
        _plot_stops(axes, setting)
    return figure


def _plot_stops(axes: "Axes", setting: Setting) -> None:
    """Plot the cells, the padding, the first window, and the center of each window."""
    from matplotlib.patches import Rectangle

    n, f, p, s = setting
    count = output_size(n, f, p, s)
    for row in range(-p, n + p):
        for column in range(-p, n + p):
            inside = 0 <= row < n and 0 <= column < n
            axes.add_patch(
                Rectangle(
                    (column, row), 1, 1, facecolor="#f1f1ee" if inside else "none", edgecolor=GRID
                )
            )
    starts = [-p + s * i for i in range(count)]
    for row in starts:
        for column in starts:
            axes.plot(column + f / 2, row + f / 2, "o", color=COLORS[0], markersize=3.5)
    for start, color in ((starts[0], COLORS[0]), (starts[1], COLORS[1])):
        axes.add_patch(
            Rectangle((start, starts[0]), f, f, facecolor=color, alpha=0.25, edgecolor="none")
        )
        axes.add_patch(
            Rectangle((start, starts[0]), f, f, fill=False, edgecolor=color, linewidth=1.6)
        )
    axes.set_xlim(-1.2, n + 1.2)
    axes.set_ylim(n + 1.2, -1.2)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(f"stride {s}, padding {p}", pad=14)
    add_subtitle(axes, f"n = {n}, f = {f}: {count} x {count} windows")


def plot_fields(args: PlotArgs) -> "Figure":
    """Plot the receptive field and the size of the maps layer by layer for small recipes."""
    figure = new_figure(9.2, 3.5, "Receptive fields grow and maps shrink, layer by layer")
    left, right = panels(figure, 1, 2)
    for name, color in zip(RECIPES, COLORS, strict=False):
        fields, sizes = growth(load_config(name).model.encoder.blocks)
        steps = range(len(fields))
        left.plot(steps, fields, "o-", color=color, markersize=3.5)
        right.plot(steps, sizes, "o-", color=color, markersize=3.5, label=name)
    left.axhline(IMAGE.height, color=FAINT, linewidth=1, linestyle="--")
    left.text(0, IMAGE.height + 0.8, "size of the image", color=INK, fontsize=8)
    left.set_ylabel("receptive field, pixels")
    left.set_ylim(0, 50)
    right.set_ylabel("side of the maps")
    right.legend()
    for axes in (left, right):
        axes.set_xlabel("block")
    return figure


def growth(blocks: Sequence[BlockOptions]) -> tuple[list[int], list[int]]:
    """Return the receptive field and the side of the map after each block, from the image on."""
    fields, sizes = [1], [IMAGE.height]
    for end in range(1, len(blocks) + 1):
        after = network_layers(blocks[:end], IMAGE)[-1].after
        is_same = (after.field[0], after.shape.height) == (fields[-1], sizes[-1])  # dropout
        if after.shape.height > 1 and not is_same:  # the rest reads the full map
            fields.append(after.field[0])
            sizes.append(after.shape.height)
    return fields, sizes
