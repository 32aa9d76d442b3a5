"""Plot of the output tokens with their probabilities and alternatives.

A step is one output token.
"""

import math
from typing import TYPE_CHECKING, Any

from regard.views.figures.fonts import FontSet
from regard.views.figures.style import COLORS, FAINT, INK, PAPER
from regard.views.inspection.figure_maps import Canvas, rotate_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MIN_PER_ROW, MAX_PER_ROW = 9, 20  # steps; wide figures have more per row
STEP_WIDTH, ROW_HEIGHT = 0.46, 1.75  # inches
ALTERNATIVE_COLORS = ("#d9c08a", "#b9d8d2", "#e5c3ce", "#cfd3d8")  # the most probable first
MIN_LABELED = 0.085  # minimum probability of an alternative whose bar has room for its name
CENTERED: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7, "rotation": 0}


def steps_per_row(width: float) -> int:
    """Return the steps per row of a figure with this width in inches, at least `MAX_PER_ROW`."""
    return max(MAX_PER_ROW, int((width - 0.9) / STEP_WIDTH))


def steps_size(steps: list[dict[str, Any]], per_row: int) -> tuple[float, float]:
    """Return the width and height in inches of a figure for `plot_steps`."""
    if len(steps) == 1:
        return 5.0, 0.28 * (1 + len(steps[0].get("alternatives", []))) + 0.9
    width = STEP_WIDTH * min(len(steps), per_row)
    return max(4.5, width + 0.9), ROW_HEIGHT * math.ceil(len(steps) / per_row) + 0.5


def plot_steps(canvas: Canvas, steps: list[dict[str, Any]], per_row: int, fonts: FontSet) -> None:
    """Plot one bar per step; for a single step, one bar per candidate."""
    if len(steps) == 1:
        _plot_candidates(canvas.subplots(1, 1), steps[0], fonts)
        return
    rows = math.ceil(len(steps) / per_row)
    axes = canvas.subplots(rows, 1, squeeze=False)[:, 0]
    for row, panel in enumerate(axes):
        shown = steps[row * per_row : (row + 1) * per_row]
        _plot_bars(panel, shown, min(len(steps), per_row), fonts)
    axes[0].set_title("probability of each output token; above it, the alternatives", fontsize=8)


def _plot_bars(axes: "Axes", steps: list[dict[str, Any]], num_columns: int, fonts: FontSet) -> None:
    """Plot a row of steps: the output token at the bottom, the alternatives above it."""
    for x, step in enumerate(steps):
        bottom = step["probability"]
        axes.bar(x, bottom, width=0.82, color=COLORS[0])
        if bottom >= 0.12:
            axes.text(x, bottom / 2, _format(bottom), color=PAPER, **CENTERED)
        for n, (name, p) in enumerate(step.get("alternatives", [])):
            color = ALTERNATIVE_COLORS[min(n, len(ALTERNATIVE_COLORS) - 1)]
            axes.bar(x, p, width=0.82, bottom=bottom, color=color)
            if p >= MIN_LABELED:
                axes.text(x, bottom + p / 2, fonts.label(name, 8), color=INK, **CENTERED)
            bottom += p
    labels = [fonts.label(step["token"]) for step in steps]
    axes.set_xticks(range(len(labels)), labels)
    rotate_labels(axes, labels, 5)
    axes.tick_params(axis="x", labelsize=9, length=0, labelcolor=INK)
    axes.tick_params(axis="y", labelsize=7.5, length=0)
    axes.set_yticks([0, 0.5, 1])
    axes.set_xlim(-0.6, max(num_columns, MIN_PER_ROW) - 0.4)
    axes.set_ylim(0, 1)
    axes.grid(False, axis="x")


def _plot_candidates(axes: "Axes", step: dict[str, Any], fonts: FontSet) -> None:
    """Plot the single output and its alternatives, the most probable at the top."""
    candidates = [(step["token"], step["probability"]), *step.get("alternatives", [])]
    names = [fonts.label(name) for name, _ in candidates]
    probabilities = [p for _, p in candidates]
    colors = [COLORS[0], *[FAINT] * (len(candidates) - 1)]
    axes.barh(range(len(candidates)), probabilities, color=colors)
    for y, p in enumerate(probabilities):
        axes.text(p + 0.01, y, _format(p), va="center", fontsize=8, color=FAINT)
    axes.set_yticks(range(len(candidates)), names)
    axes.tick_params(axis="y", labelcolor=INK, length=0)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.08)
    axes.set_xticks([0, 0.5, 1])
    axes.grid(False, axis="y")
    axes.set_title("probability", fontsize=8)


def _format(p: float) -> str:
    """Return a probability with two decimals."""
    return "1" if p >= 0.995 else f"{p:.2f}" if p >= 0.005 else "< 0.01"
