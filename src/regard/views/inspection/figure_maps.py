"""Plots of heat maps: many small maps in a grid, or one or two large maps with their values."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from regard.views.figures.style import COLORS, FAINT, INK, PAPER, hide_frame, new_figure
from regard.views.inspection.figure_views import Heatmap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

Canvas = Union["Figure", "SubFigure"]

COLORMAP = (PAPER, "#bcd7e8", "#5e93c4", COLORS[0])  # darker is larger, also in grayscale
NEGATIVE = ("#8a4a0b", "#d8923f", "#f3d6b0")  # from the largest to the smallest
MIN_PANEL, MAX_PANEL, MAX_LARGE_PANEL = (
    1.15,
    2.6,
    7.0,
)  # inches; `MAX_LARGE_PANEL` is for one or two maps
POINTS_PER_INCH = 72
MIN_FONT_SIZE = 4.5  # points
MAX_IN_ONE_ROW = 4  # maps of a single layer
CELL, MIN_CELL_WITH_VALUE = 0.44, 0.34  # inches per cell of a large map
COLORBAR = (0.13, 2.2)  # inches, width and height


def arrange(maps: list[list[Heatmap]]) -> list[list[Heatmap]]:
    """Return the maps as a grid with one row per layer; a single layer with many heads wraps."""
    if len(maps) > 1 or len(maps[0]) <= MAX_IN_ONE_ROW:
        return maps
    columns = math.ceil(math.sqrt(len(maps[0]) * 2))
    return [maps[0][start : start + columns] for start in range(0, len(maps[0]), columns)]


def grid_size(maps: list[list[Heatmap]]) -> tuple[float, float]:
    """Return the width and height in inches of a figure for `plot_grid`."""
    grid = arrange(maps)
    width, height = _panel_size(maps)
    left = 0.06 * max(len(label) for label in maps[0][0].rows) + 0.5
    bottom = 0.06 * max(len(label) for label in maps[0][0].columns) + 0.5
    total_width = max(len(row) for row in grid) * (width + 0.12) + left + 0.7
    return max(4.5, total_width), len(grid) * (height + 0.2) + bottom + 0.6


def plot_grid(canvas: Canvas, maps: list[list[Heatmap]]) -> None:
    """Plot all maps with the same color scale, and tokens only at the left and at the bottom."""
    grid = arrange(maps)
    scale = color_range([one for row in maps for one in row])
    axes = canvas.subplots(len(grid), max(map(len, grid)), squeeze=False)
    panel_size = _panel_size(maps)
    image: Any = None
    for y, row in enumerate(grid):
        for panel in axes[y][len(row) :]:
            panel.remove()
        for x, one in enumerate(row):
            panel = axes[y][x]
            is_lowest = y + 1 == len(grid) or x >= len(grid[y + 1])
            image = _plot_colors(panel, one, scale)
            panel.set_title(one.title.partition(", ")[2] or one.title, fontsize=8)
            _set_ticks(panel, "y", one.rows if x == 0 else [], panel_size[1])
            _set_ticks(panel, "x", one.columns if is_lowest else [], panel_size[0])
    canvas.supylabel(maps[0][0].row_name, fontsize=9, color=FAINT)
    name = maps[0][0].title.partition(",")[0]
    size = panel_size[0] * max(map(len, grid)), panel_size[1] * len(grid)
    _add_colorbar(canvas, image, list(axes.flat), name, size)


def color_range(maps: list[Heatmap]) -> tuple[float, float]:
    """Return the ends of the common color scale of several maps.

    It starts at 0, or is symmetric if a map has negative weights.
    """
    values = [one.values for one in maps if one.values.size]
    lowest = min((float(one.min()) for one in values), default=0.0)
    top = max((float(np.abs(one).max()) for one in values), default=0.0) or 1.0
    return (-top if lowest < 0 else 0.0), top


def plot_large(title: str, maps: list[Heatmap]) -> "Figure":
    """Return a figure of one map, or of two maps with the same rows; write values if they fit."""
    num_columns = [len(one.columns) for one in maps]
    longest = max(sum(num_columns), len(maps[0].rows))
    cell = min(CELL, max(9 / longest, 0.1))
    left = 0.08 * max(map(len, maps[0].rows)) + 1.4
    bottom = 0.08 * max(len(label) for one in maps for label in one.columns) + 1.4
    size = (cell * sum(num_columns) + left, cell * len(maps[0].rows) + bottom)
    figure = new_figure(max(4.2, size[0]), size[1], title)
    axes = figure.subplots(1, len(maps), squeeze=False, width_ratios=num_columns)[0]
    scale = color_range(maps)
    image: Any = None
    for panel, one in zip(axes, maps, strict=True):
        image = _plot_colors(panel, one, scale)
        panel.set_xlabel(one.column_name)
        _set_ticks(panel, "x", one.columns, cell * len(one.columns))
        _set_ticks(panel, "y", one.rows if one is maps[0] else [], cell * len(one.rows))
        if cell >= MIN_CELL_WITH_VALUE:
            _add_values(panel, one, scale[1])
    if len(maps) == 1:
        axes[0].set_aspect("equal")
    axes[0].set_title(maps[0].title)
    axes[0].set_ylabel(maps[0].row_name)
    _add_colorbar(
        figure, image, list(axes), "", (cell * sum(num_columns), cell * len(maps[0].rows))
    )
    return figure


def _panel_size(maps: list[list[Heatmap]]) -> tuple[float, float]:
    """Return the width and height of each small map in inches, from its number of tokens."""
    one = maps[0][0]
    num_rows, num_columns = len(one.rows), len(one.columns)
    few = sum(map(len, maps)) <= 2
    max_width, cell = (MAX_LARGE_PANEL, 0.3) if few else (MAX_PANEL, 0.09)
    width = min(max(MIN_PANEL, cell * num_columns), max_width)
    return width, min(max(0.25, width / max(1, num_columns) * num_rows), 1.5 * max_width)


def _plot_colors(axes: "Axes", one: Heatmap, scale: tuple[float, float]) -> Any:
    """Plot the values of a map as colors, row 0 at the top. scale: as `color_range` returns it."""
    from matplotlib.colors import LinearSegmentedColormap

    bottom, top = scale
    colors = (*NEGATIVE, *COLORMAP) if bottom else COLORMAP
    colormap = LinearSegmentedColormap.from_list("regard", colors)
    image = axes.imshow(one.values, cmap=colormap, vmin=bottom, vmax=top, aspect="auto")
    if one.hidden:
        _add_hatching(axes, one.hidden)
    hide_frame(axes)
    axes.spines[:].set_visible(True)
    axes.spines[:].set_linewidth(0.5)
    return image


def _add_hatching(axes: "Axes", hidden: tuple[str, ...]) -> None:
    """Hatch the cells that no head can attend to."""
    from matplotlib.collections import PolyCollection

    cells = [(x, y) for y, row in enumerate(hidden) for x, one in enumerate(row) if one == "1"]
    corners = np.array([(-0.5, -0.5), (-0.5, 0.5), (0.5, 0.5), (0.5, -0.5)])
    squares = list(np.array(cells)[:, None] + corners)
    axes.add_collection(
        PolyCollection(squares, hatch="/////", facecolor="none", edgecolor="#d5d5d5", linewidth=0)
    )


def _set_ticks(axes: "Axes", axis: str, labels: Sequence[str], inches: float) -> None:
    """Label every row or column; if labels would be too small, number every tenth one."""
    set_ticks = axes.set_xticks if axis == "x" else axes.set_yticks
    if not labels:
        set_ticks([])
        return
    size = min(9.0, 0.85 * POINTS_PER_INCH * inches / len(labels))
    if size < MIN_FONT_SIZE:
        set_ticks(range(0, len(labels), 10))
        axes.tick_params(axis=axis, labelsize=6)  # type: ignore[arg-type]
        return
    set_ticks(range(len(labels)), labels)
    axes.tick_params(axis=axis, labelsize=size, pad=1.5, labelcolor=INK)  # type: ignore[arg-type]
    if axis == "x":
        rotate_labels(axes, labels, POINTS_PER_INCH * inches / len(labels) / (0.62 * size))


def rotate_labels(axes: "Axes", labels: Sequence[str], max_chars: float) -> None:
    """Rotate x labels with more than `max_chars` characters; rotate all if many are longer."""
    too_long = [len(label) > max(1.0, max_chars) for label in labels]
    many = sum(too_long) > len(labels) / 4  # a mix of rotated and other labels is hard to read
    for tick, is_long in zip(axes.get_xticklabels(), too_long, strict=True):
        tick.set_rotation(90 if is_long or many else 0)


def _add_values(axes: "Axes", one: Heatmap, top: float) -> None:
    """Write each value into its cell with two decimals; omit values that round to 0."""
    for (y, x), value in np.ndenumerate(one.values):
        if abs(value) >= 0.005:
            ink = PAPER if abs(value) > 0.55 * top else INK
            text = f"{value:.2f}".replace("0.", ".", 1)
            axes.text(x, y, text, ha="center", va="center", fontsize=7.5, color=ink)


def _add_colorbar(
    canvas: Canvas, image: Any, axes: list["Axes"], name: str, inches: tuple[float, float]
) -> None:
    """Add a color bar next to the panels. inches: total width and height of the panels."""
    from matplotlib.ticker import MaxNLocator

    panels = [panel for panel in axes if panel.figure is not None]
    width, height = inches
    fraction = min(1.0, COLORBAR[1] / height)
    layout: dict[str, Any] = {
        "fraction": COLORBAR[0] / width,
        "shrink": fraction,
        "aspect": fraction * height / COLORBAR[0],
        "pad": 0.01,
    }
    bar = canvas.colorbar(image, ax=panels, ticks=MaxNLocator(3), **layout)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7.5, length=0)
    bar.set_label(name, fontsize=8)
