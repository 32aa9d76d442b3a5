"""The answer token by token: how probable each was, and what else might have come."""

import math
from typing import TYPE_CHECKING, Any

from regard.views.figures.fonts import FontSet
from regard.views.figures.style import COLORS, FAINT, INK, PAPER
from regard.views.inspection.figure_maps import Place, turn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST, MOST = 9, 20  # steps side by side that there is room for; on wide figures more
WIDE, HIGH = 0.46, 1.75  # inches of a step and of a row of steps
OTHERS = ("#d9c08a", "#b9d8d2", "#e5c3ce", "#cfd3d8")  # of runners-up, the first at the bottom
READABLE = 0.085  # of the height of a bar has room for a name


def steps_a_row(width: float) -> int:
    """How many steps stand side by side in a figure that has to be so many inches wide."""
    return max(MOST, int((width - 0.9) / WIDE))


def steps_size(steps: list[dict[str, Any]], a_row: int) -> tuple[float, float]:
    """Inches, wide and high, for these steps."""
    if len(steps) == 1:
        return 5.0, 0.28 * (1 + len(steps[0].get("others", []))) + 0.9
    wide = WIDE * min(len(steps), a_row)
    return max(4.5, wide + 0.9), HIGH * math.ceil(len(steps) / a_row) + 0.5


def draw_steps(into: Place, steps: list[dict[str, Any]], a_row: int, hand: FontSet) -> None:
    """Fills a figure: a bar a step, or where there is one step only, a bar a candidate."""
    if len(steps) == 1:
        _candidates(into.subplots(1, 1), steps[0], hand)
        return
    rows = math.ceil(len(steps) / a_row)
    axes = into.subplots(rows, 1, squeeze=False)[:, 0]
    for row, panel in enumerate(axes):
        _bars(panel, steps[row * a_row : (row + 1) * a_row], min(len(steps), a_row), hand)
    axes[0].set_title("probability of each token; on it, what else might have come", fontsize=8)


def _bars(axes: "Axes", steps: list[dict[str, Any]], across: int, hand: FontSet) -> None:
    """A row of steps: at the foot the token that came, on it what else might have come."""
    for x, step in enumerate(steps):
        axes.bar(x, step["p"], width=0.82, color=COLORS[0])
        if step["p"] >= 0.12:
            axes.text(x, step["p"] / 2, _said(step["p"]), color=PAPER, **_MIDDLE)
        foot = step["p"]
        for n, (name, p) in enumerate(step.get("others", [])):
            axes.bar(x, p, width=0.82, bottom=foot, color=OTHERS[min(n, len(OTHERS) - 1)])
            if p >= READABLE:
                axes.text(x, foot + p / 2, hand.label(name, 8), color=INK, **_MIDDLE)
            foot += p
    labels = [hand.label(step["token"]) for step in steps]
    axes.set_xticks(range(len(labels)), labels)
    turn(axes, labels, 5)
    axes.tick_params(axis="x", labelsize=9, length=0, labelcolor=INK)
    axes.tick_params(axis="y", labelsize=7.5, length=0)
    axes.set_yticks([0, 0.5, 1])
    axes.set_xlim(-0.6, max(across, FEWEST) - 0.4)
    axes.set_ylim(0, 1)
    axes.grid(False, axis="x")


def _candidates(axes: "Axes", step: dict[str, Any], hand: FontSet) -> None:
    """The one answer and what else it might have been, the most probable at the top."""
    found = [(step["token"], step["p"]), *step.get("others", [])]
    names = [hand.label(name) for name, _ in found]
    chances = [p for _, p in found]
    axes.barh(range(len(found)), chances, color=[COLORS[0], *[FAINT] * (len(found) - 1)])
    for y, p in enumerate(chances):
        axes.text(p + 0.01, y, _said(p), va="center", fontsize=8, color=FAINT)
    axes.set_yticks(range(len(found)), names)
    axes.tick_params(axis="y", labelcolor=INK, length=0)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.08)
    axes.set_xticks([0, 0.5, 1])
    axes.grid(False, axis="y")
    axes.set_title("probability", fontsize=8)


_MIDDLE: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7, "rotation": 0}


def _said(p: float) -> str:
    """A probability in two digits."""
    return "1" if p >= 0.995 else f"{p:.2f}" if p >= 0.005 else "< 0.01"
