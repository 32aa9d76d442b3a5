"""A tree from left to right: nodes with names, branches as thick as they are probable."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from regard.views.figures.style import COLORS, FAINT, GRID, INK, PAPER, bare, new_figure, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Key = tuple[int, ...]
Place = tuple[float, float]
WIDE, HIGH = 1.3, 0.4  # inches of a step and of a leaf
PALE = "#c3c6c1"


class Colors:
    """Of the two ways through a tree."""

    greedy, best = COLORS[1], COLORS[0]


def places(keys: Mapping[Key, float]) -> dict[Key, Place]:
    """Where each node stands, the root () among them: its depth, and the middle of its leaves.

    keys: how probable each is after the one before it; the most probable is at the top.
    """
    children: dict[Key, list[Key]] = {}
    for key in sorted(keys, key=lambda key: -keys[key]):
        children.setdefault(key[:-1], []).append(key)
    found: dict[Key, Place] = {}
    leaves = 0

    def place(key: Key) -> float:
        nonlocal leaves
        below = [place(child) for child in children.get(key, [])]
        if not below:
            below = [-float(leaves)]
            leaves += 1
        found[key] = (float(len(key)), (below[0] + below[-1]) / 2)
        return found[key][1]

    place(())
    return found


def draw_tree(
    title: str,
    labels: Mapping[Key, str],
    chances: Mapping[Key, float],
    fates: Mapping[Key, str],
    notes: Mapping[Key, str],
    ways: Mapping[str, tuple[Key, str]],
) -> "Figure":
    """The figure. notes: beside nodes; ways: by their name in the legend, to which node, color."""
    at = places(chances)
    depth = max(x for x, _ in at.values())
    low = min(y for _, y in at.values())
    figure = new_figure(WIDE * (depth + 1.2) + 0.6, HIGH * (1 - low) + 1.5, title)
    (axes,) = panels(figure, 1, 1)
    bare(axes)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlim(-0.35, depth + 0.95)
    axes.set_ylim(low - 0.6, max(y for _, y in at.values()) + 0.6)
    for key in chances:
        color = PALE if fates[key] == "dropped" else INK
        _branch(axes, at[key[:-1]], at[key], color, 0.8 + 1.6 * chances[key], 2)
    for thick, (end, color) in zip((7.5, 3.0), ways.values(), strict=False):
        for n in range(len(end)):
            alpha = 0.45 if thick > 5 else 1.0
            _branch(axes, at[end[:n]], at[end[: n + 1]], color, thick, 3, alpha)
    _node(axes, at[()], "begin", "goes", FAINT)
    winners = {end: color for end, color in ways.values()}
    for key, label in labels.items():
        _node(axes, at[key], label, fates[key], winners.get(key))
        _chance(axes, at[key[:-1]], at[key], chances[key], fates[key])
        if key in notes:
            x, y = at[key]
            axes.text(x + 0.26, y, notes[key], va="center", fontsize=8.5, color=FAINT)
    _legend(figure, ways)
    return figure


def _branch(
    axes: "Axes",
    start: Place,
    end: Place,
    color: str,
    width: float,
    order: int,
    alpha: float = 1.0,
) -> None:
    """A line that leaves and arrives level."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    (x0, y0), (x1, y1) = start, end
    half = x0 + 0.5 * (x1 - x0)
    curve = Path([start, (half, y0), (half, y1), end], [1, 4, 4, 4])
    drawn = {"edgecolor": color, "linewidth": width, "alpha": alpha, "zorder": order}
    axes.add_patch(PathPatch(curve, facecolor="none", capstyle="round", **drawn))


def _node(axes: "Axes", at: Place, label: str, fate: str, color: str | None) -> None:
    """The name of a node in a box; one that ended has a strong frame."""
    kept = fate != "dropped"
    frame = color or (INK if fate == "ends" else GRID if not kept else FAINT)
    box = {
        "boxstyle": "round,pad=0.34" if fate != "ends" else "square,pad=0.3",
        "facecolor": PAPER if fate != "ends" else "#ecebe4",
        "edgecolor": frame,
        "linewidth": 1.8 if fate == "ends" else 0.9,
    }
    ink = INK if kept else "#9a9e99"
    axes.text(*at, label, ha="center", va="center", fontsize=9.5, color=ink, bbox=box, zorder=5)


def _chance(axes: "Axes", start: Place, end: Place, p: float, fate: str) -> None:
    """The probability of a branch, on it."""
    x = start[0] + 0.66 * (end[0] - start[0])
    y = start[1] + 0.88 * (end[1] - start[1])
    shown = f"{p:.2f}" if p >= 0.005 else f"{p:.0e}"
    ink = FAINT if fate != "dropped" else "#9a9e99"
    box = {"boxstyle": "round,pad=0.12", "facecolor": PAPER, "edgecolor": "none"}
    axes.text(x, y, shown, ha="center", va="center", fontsize=7.5, color=ink, bbox=box, zorder=4)


def _legend(figure: "Figure", ways: Mapping[str, tuple[Key, str]]) -> None:
    """What the colors, frames and pale lines mean."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    lines: list[Line2D | Patch] = [
        Line2D([], [], color=color, linewidth=thick, alpha=0.45 if thick > 5 else 1.0)
        for thick, (_, color) in zip((7.5, 3.0), ways.values(), strict=False)
    ]
    lines += [
        Line2D([], [], color=INK, linewidth=1.6),
        Line2D([], [], color=PALE, linewidth=1.2),
        Patch(facecolor="#ecebe4", edgecolor=INK, linewidth=1.5),
    ]
    names = [*ways, "kept", "dropped", "an output"]
    figure.legend(lines, names, loc="outside lower left", ncols=2, handlelength=1.8, fontsize=8.5)
