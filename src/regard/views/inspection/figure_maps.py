"""Maps in color: a grid of small ones with tokens on its outer axes, or large with numbers."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from regard.views.figures.style import COLORS, FAINT, INK, PAPER, bare, new_figure
from regard.views.inspection.figure_views import Heatmap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

Place = Union["Figure", "SubFigure"]

RAMP = (PAPER, "#bcd7e8", "#5e93c4", COLORS[0])  # darker is more, also without color
SMALL, WIDEST, LARGE = 1.15, 2.6, 7.0  # inches of one of many maps; of one of two at most
POINT = 72  # of an inch
LEAST = 4.5  # points of a letter that can still be read
FEW = 4  # maps of a single layer that stand in one row
CELL, NUMBERS = 0.44, 0.34  # inches of a large cell, and of one that has room for its number
BAR = (0.13, 2.2)  # inches, wide and high, of the scale of colors


def arranged(maps: list[list[Heatmap]]) -> list[list[Heatmap]]:
    """The maps as a grid: a row a layer, but the many heads of a single layer in several rows."""
    if len(maps) > 1 or len(maps[0]) <= FEW:
        return maps
    wide = math.ceil(math.sqrt(len(maps[0]) * 2))
    return [maps[0][at : at + wide] for at in range(0, len(maps[0]), wide)]


def grid_size(maps: list[list[Heatmap]]) -> tuple[float, float]:
    """Inches, wide and high, of a grid."""
    grid = arranged(maps)
    wide, high = _panel(maps)
    labels = 0.06 * max(len(label) for label in maps[0][0].rows) + 0.5
    below = 0.06 * max(len(label) for label in maps[0][0].columns) + 0.5
    across = max(len(row) for row in grid) * (wide + 0.12) + labels + 0.7
    return max(4.5, across), len(grid) * (high + 0.2) + below + 0.6


def draw_grid(into: Place, maps: list[list[Heatmap]]) -> None:
    """Fills a figure with all maps on one scale; tokens only at the left and at the bottom."""
    grid = arranged(maps)
    top = highest([one for row in maps for one in row])
    axes = into.subplots(len(grid), max(map(len, grid)), squeeze=False)
    inches = _panel(maps)
    shown: Any = None
    for y, row in enumerate(grid):
        for panel in axes[y][len(row) :]:
            panel.remove()
        for x, one in enumerate(row):
            panel = axes[y][x]
            below = y + 1 == len(grid) or x >= len(grid[y + 1])
            shown = _colored(panel, one, top)
            panel.set_title(one.title.partition(", ")[2] or one.title, fontsize=8)
            _ticks(panel, "y", one.rows if x == 0 else [], inches[1])
            _ticks(panel, "x", one.columns if below else [], inches[0])
    into.supylabel(maps[0][0].row_name, fontsize=9, color=FAINT)
    name = maps[0][0].title.partition(",")[0]
    whole = inches[0] * max(map(len, grid)), inches[1] * len(grid)
    _bar(into, shown, list(axes.flat), name, whole)


def highest(maps: list[Heatmap]) -> float:
    """The largest value of several maps, where their scale ends."""
    return max((float(one.values.max()) for one in maps if one.values.size), default=0.0) or 1.0


def large(title: str, maps: list[Heatmap]) -> "Figure":
    """A figure of one map, or of two of the same rows on one scale; with numbers that fit."""
    columns = [len(one.columns) for one in maps]
    longest = max(sum(columns), len(maps[0].rows))
    cell = min(CELL, max(9 / longest, 0.1))
    beside = 0.08 * max(map(len, maps[0].rows)) + 1.4
    below = 0.08 * max(len(label) for one in maps for label in one.columns) + 1.4
    size = (cell * sum(columns) + beside, cell * len(maps[0].rows) + below)
    figure = new_figure(max(4.2, size[0]), size[1], title)
    axes = figure.subplots(1, len(maps), squeeze=False, width_ratios=columns)[0]
    top = highest(maps)
    shown: Any = None
    for panel, one in zip(axes, maps, strict=True):
        shown = _colored(panel, one, top)
        panel.set_xlabel(one.column_name)
        _ticks(panel, "x", one.columns, cell * len(one.columns))
        _ticks(panel, "y", one.rows if one is maps[0] else [], cell * len(one.rows))
        if cell >= NUMBERS:
            _numbers(panel, one, top)
    if len(maps) == 1:
        axes[0].set_aspect("equal")
    axes[0].set_title(maps[0].title)
    axes[0].set_ylabel(maps[0].row_name)
    _bar(figure, shown, list(axes), "", (cell * sum(columns), cell * len(maps[0].rows)))
    return figure


def _panel(maps: list[list[Heatmap]]) -> tuple[float, float]:
    """Inches, wide and high, of each of many small maps: as large as the tokens need."""
    one = maps[0][0]
    rows, columns = len(one.rows), len(one.columns)
    few = sum(map(len, maps)) <= 2
    widest, cell = (LARGE, 0.3) if few else (WIDEST, 0.09)
    wide = min(max(SMALL, cell * columns), widest)
    return wide, min(max(0.25, wide / max(1, columns) * rows), 1.5 * widest)


def _colored(axes: "Axes", one: Heatmap, top: float) -> Any:
    """The values in color, row 0 at the top."""
    from matplotlib.colors import LinearSegmentedColormap

    ramp = LinearSegmentedColormap.from_list("regard", RAMP)
    shown = axes.imshow(one.values, cmap=ramp, vmin=0, vmax=top, aspect="auto")
    bare(axes)
    axes.spines[:].set_visible(True)
    axes.spines[:].set_linewidth(0.5)
    return shown


def _ticks(axes: "Axes", which: str, labels: Sequence[str], inches: float) -> None:
    """A label a cell; where there are too many to be read, every tenth place by its number."""
    put = axes.set_xticks if which == "x" else axes.set_yticks
    if not labels:
        put([])
        return
    size = min(9.0, 0.85 * POINT * inches / len(labels))
    if size < LEAST:
        put(range(0, len(labels), 10))
        axes.tick_params(axis=which, labelsize=6)  # type: ignore[arg-type]
        return
    put(range(len(labels)), labels)
    axes.tick_params(axis=which, labelsize=size, pad=1.5, labelcolor=INK)  # type: ignore[arg-type]
    if which == "x":
        turn(axes, labels, POINT * inches / len(labels) / (0.62 * size))


def turn(axes: "Axes", labels: Sequence[str], letters: float) -> None:
    """Writes labels under an axis upwards where they have more letters than room for them."""
    wide = [len(label) > max(1.0, letters) for label in labels]
    many = sum(wide) > len(labels) / 4  # then all, since lines of both kinds are hard to read
    for tick, is_wide in zip(axes.get_xticklabels(), wide, strict=True):
        tick.set_rotation(90 if is_wide or many else 0)


def _numbers(axes: "Axes", one: Heatmap, top: float) -> None:
    """Each value in its cell, in two digits."""
    for (y, x), value in np.ndenumerate(one.values):
        if value >= 0.005:
            ink = PAPER if value > 0.55 * top else INK
            said = f"{value:.2f}".lstrip("0")
            axes.text(x, y, said, ha="center", va="center", fontsize=7.5, color=ink)


def _bar(
    into: Place, shown: Any, axes: list["Axes"], name: str, inches: tuple[float, float]
) -> None:
    """What the colors mean, beside panels of so many inches in all."""
    from matplotlib.ticker import MaxNLocator

    there = [panel for panel in axes if panel.figure is not None]
    wide, high = inches
    part = min(1.0, BAR[1] / high)
    look: dict[str, Any] = {
        "fraction": BAR[0] / wide,
        "shrink": part,
        "aspect": part * high / BAR[0],
        "pad": 0.01,
    }
    bar = into.colorbar(shown, ax=there, ticks=MaxNLocator(3), **look)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7.5, length=0)
    bar.set_label(name, fontsize=8)
