"""Plot of a tree from left to right; more probable branches are thicker.

The key of a node is the tuple of ids on the path from the root. The key of the root is ().
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from regard.views.figures.style import (
    COLORS,
    FAINT,
    GRID,
    INK,
    PAPER,
    hide_frame,
    new_figure,
    panels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Key = tuple[int, ...]
Point = tuple[float, float]
STEP_WIDTH, LEAF_HEIGHT = 1.3, 0.4  # inches
PALE, PALE_INK, SHADE = "#c3c6c1", "#9a9e99", "#ecebe4"


class Colors:
    """Colors of the greedy path and of the best path through a tree."""

    greedy, best = COLORS[1], COLORS[0]


def node_positions(keys: Mapping[Key, float]) -> dict[Key, Point]:
    """Return the position of each node and of the root: x is the depth, y the middle of its leaves.

    keys: the probability of each node given its parent. The most probable child is at the top.
    """
    children: dict[Key, list[Key]] = {}
    for key in sorted(keys, key=lambda key: -keys[key]):
        children.setdefault(key[:-1], []).append(key)
    positions: dict[Key, Point] = {}
    num_leaves = 0

    def place(key: Key) -> float:
        nonlocal num_leaves
        heights = [place(child) for child in children.get(key, [])]
        if not heights:
            heights = [-float(num_leaves)]
            num_leaves += 1
        positions[key] = (float(len(key)), (heights[0] + heights[-1]) / 2)
        return positions[key][1]

    place(())
    return positions


def plot_tree(
    title: str,
    labels: Mapping[Key, str],
    probabilities: Mapping[Key, float],
    statuses: Mapping[Key, str],
    notes: Mapping[Key, str],
    paths: Mapping[str, tuple[Key, str]],
) -> "Figure":
    """Return the figure of a tree.

    statuses: "kept", "pruned" or "finished". notes: text next to nodes. paths: last node and color
    of each highlighted path, by its name in the legend.
    """
    positions = node_positions(probabilities)
    depth = max(x for x, _ in positions.values())
    low = min(y for _, y in positions.values())
    figure = new_figure(STEP_WIDTH * (depth + 1.2) + 0.6, LEAF_HEIGHT * (1 - low) + 1.5, title)
    (axes,) = panels(figure, 1, 1)
    hide_frame(axes)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlim(-0.35, depth + 0.95)
    axes.set_ylim(low - 0.6, max(y for _, y in positions.values()) + 0.6)
    for key, p in probabilities.items():
        color = PALE if statuses[key] == "pruned" else INK
        _plot_branch(axes, positions[key[:-1]], positions[key], color, 0.8 + 1.6 * p, 2)
    for width, (end, color) in zip((7.5, 3.0), paths.values(), strict=False):
        for n in range(len(end)):
            alpha = 0.45 if width > 5 else 1.0
            start, stop = positions[end[:n]], positions[end[: n + 1]]
            _plot_branch(axes, start, stop, color, width, 3, alpha)
    _plot_node(axes, positions[()], "start", "kept", FAINT)
    path_colors = {end: color for end, color in paths.values()}
    for key, label in labels.items():
        _plot_node(axes, positions[key], label, statuses[key], path_colors.get(key))
        start, stop = positions[key[:-1]], positions[key]
        _plot_probability(axes, start, stop, probabilities[key], statuses[key])
        if key in notes:
            x, y = positions[key]
            axes.text(x + 0.26, y, notes[key], va="center", fontsize=8.5, color=FAINT)
    _add_legend(figure, paths)
    return figure


def _plot_branch(
    axes: "Axes",
    start: Point,
    end: Point,
    color: str,
    width: float,
    order: int,
    alpha: float = 1.0,
) -> None:
    """Plot a branch as a curve with horizontal ends."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    (x0, y0), (x1, y1) = start, end
    half = x0 + 0.5 * (x1 - x0)
    curve = Path([start, (half, y0), (half, y1), end], [1, 4, 4, 4])
    style = {"edgecolor": color, "linewidth": width, "alpha": alpha, "zorder": order}
    axes.add_patch(PathPatch(curve, facecolor="none", capstyle="round", **style))


def _plot_node(axes: "Axes", at: Point, label: str, status: str, color: str | None) -> None:
    """Plot the label of a node in a box; finished nodes have a thick frame."""
    finished, pruned = status == "finished", status == "pruned"
    box = {
        "boxstyle": "square,pad=0.3" if finished else "round,pad=0.34",
        "facecolor": SHADE if finished else PAPER,
        "edgecolor": color or (INK if finished else GRID if pruned else FAINT),
        "linewidth": 1.8 if finished else 0.9,
    }
    ink = PALE_INK if pruned else INK
    axes.text(*at, label, ha="center", va="center", fontsize=9.5, color=ink, bbox=box, zorder=5)


def _plot_probability(axes: "Axes", start: Point, end: Point, p: float, status: str) -> None:
    """Write the probability of a branch onto the branch."""
    x = start[0] + 0.66 * (end[0] - start[0])
    y = start[1] + 0.88 * (end[1] - start[1])
    text = f"{p:.2f}" if p >= 0.005 else f"{p:.0e}"
    ink = FAINT if status != "pruned" else PALE_INK
    box = {"boxstyle": "round,pad=0.12", "facecolor": PAPER, "edgecolor": "none"}
    axes.text(x, y, text, ha="center", va="center", fontsize=7.5, color=ink, bbox=box, zorder=4)


def _add_legend(figure: "Figure", paths: Mapping[str, tuple[Key, str]]) -> None:
    """Add a legend of the colors, frames and pale lines."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    lines: list[Line2D | Patch] = [
        Line2D([], [], color=color, linewidth=width, alpha=0.45 if width > 5 else 1.0)
        for width, (_, color) in zip((7.5, 3.0), paths.values(), strict=False)
    ]
    lines += [
        Line2D([], [], color=INK, linewidth=1.6),
        Line2D([], [], color=PALE, linewidth=1.2),
        Patch(facecolor=SHADE, edgecolor=INK, linewidth=1.5),
    ]
    names = [*paths, "kept", "pruned", "finished"]
    figure.legend(lines, names, loc="outside lower left", ncols=2, handlelength=1.8, fontsize=8.5)
