"""Plot of a search that decodes in parallel: passes of mask-predict, or frames of CTC."""

from typing import TYPE_CHECKING, Any

from regard.views.figures.fonts import FontSet
from regard.views.figures.style import COLORS, FAINT, INK, PAPER, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELL_WIDTH, CELL_HEIGHT = 0.52, 0.4  # inches
BLANK = "·"


def plot_search_steps(title: str, inspection: dict[str, Any], fonts: FontSet) -> "Figure":
    """Return the figure of the passes, or of the frames."""
    search = inspection["search"]
    if search["kind"] == "frames":
        return _plot_frames(title, inspection, fonts)
    passes = search["passes"]
    columns = max((len(tokens) for tokens in passes), default=0) or 1
    lengths = [one for one in search["lengths"] if one["probability"] is not None]
    height = CELL_HEIGHT * len(passes) + 0.9 + (0.22 * len(lengths) + 0.5) * bool(lengths)
    figure = new_figure(max(4.5, CELL_WIDTH * columns + 1.2), height, title)
    ratios = [CELL_HEIGHT * len(passes) + 0.4, 0.22 * len(lengths) + 0.5]
    if lengths:
        upper, lower = figure.subplots(2, 1, height_ratios=ratios)
        _plot_lengths(lower, lengths, fonts)
    else:
        upper = figure.subplots(1, 1)
    _plot_grid(upper, passes, columns, fonts)
    upper.set_title("tokens that each pass wrote (framed); darker: more probable", fontsize=8)
    return figure


def _plot_grid(
    axes: "Axes", passes: list[list[dict[str, Any]]], columns: int, fonts: FontSet
) -> None:
    """Plot one row per pass and one cell per token, with its probability as the color."""
    for y, tokens in enumerate(passes):
        for x, one in enumerate(tokens):
            _plot_cell(axes, x, y, fonts.label(one["token"], 8), one["probability"], one["written"])
    _finish(axes, columns, len(passes))
    axes.set_yticks(range(len(passes)), [f"pass {n}" for n in range(1, len(passes) + 1)])


def _plot_lengths(axes: "Axes", lengths: list[dict[str, Any]], fonts: FontSet) -> None:
    """Plot the probability of each candidate length, with its output."""
    for y, one in enumerate(lengths):
        color = COLORS[0] if one["best"] else FAINT
        axes.barh(y, one["probability"], color=color, height=0.7)
        text = fonts.label(one["text"], 60)
        axes.text(one["probability"] + 0.01, y, text, va="center", fontsize=7, color=INK)
    axes.set_yticks(range(len(lengths)), [f"length {one['length']}" for one in lengths])
    axes.tick_params(axis="y", length=0, labelsize=8)
    axes.tick_params(axis="x", labelsize=7)
    axes.set_xlim(0, 1.6)
    axes.set_xticks([0, 0.5, 1])
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    axes.set_title("probability of the length", fontsize=8)


def _plot_frames(title: str, inspection: dict[str, Any], fonts: FontSet) -> "Figure":
    """Return the figure of the frames, below the source tokens that they belong to."""
    frames, source = inspection["search"]["frames"], inspection["source"]["tokens"]
    per = max(1, round(inspection["search"]["per_source"]))
    figure = new_figure(max(4.5, CELL_WIDTH * len(frames) + 1.2), 1.9, title)
    axes = figure.subplots(1, 1)
    for x, one in enumerate(frames):
        name = BLANK if one["token"] is None else fonts.label(one["token"], 8)
        _plot_cell(axes, x, 0, name, one["probability"], one["token"] is not None)
    _finish(axes, len(frames), 1)
    axes.set_yticks([0], ["frames"])
    starts = range(0, len(frames), per)
    axes.set_xticks([x + (per - 1) / 2 for x in starts])
    axes.set_xticklabels([fonts.label(token, 8) for token in source[: len(starts)]])
    axes.tick_params(axis="x", labelsize=9, length=0, labelcolor=INK, top=False)
    axes.set_title(f"the output token of each frame; {BLANK} is a blank", fontsize=8)
    return figure


def _plot_cell(axes: "Axes", x: int, y: int, name: str, p: float, framed: bool) -> None:
    """Plot a cell with a token; its color is its probability."""
    from matplotlib.patches import Rectangle

    edge = {"edgecolor": COLORS[1], "linewidth": 1.6} if framed else {"edgecolor": PAPER}
    corner = (x - 0.44, y - 0.4)
    axes.add_patch(Rectangle(corner, 0.88, 0.8, facecolor=COLORS[0], alpha=0.06 + 0.4 * p))
    axes.add_patch(Rectangle(corner, 0.88, 0.8, fill=False, **edge))
    axes.text(x, y, name, ha="center", va="center", fontsize=8, color=INK)


def _finish(axes: "Axes", columns: int, rows: int) -> None:
    """Set the limits of a grid of cells, and remove ticks and grid lines."""
    axes.set_xlim(-0.6, columns - 0.4)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0, labelsize=8)
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)
