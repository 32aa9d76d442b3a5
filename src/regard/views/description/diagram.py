"""A drawn diagram of a model: its parts from top to bottom, with their names and sizes."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from regard.views.description.describe_model import Description
from regard.views.description.parts import Part, merge_equal, total
from regard.views.figures.style import COLORS, FAINT, INK, PAPER, hide_frame, new_figure, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW = 0.34  # inches
GLYPH = 0.8  # of a row, side of the largest map


def draw(found: Description) -> Figure:
    """Return the diagram. Left: maps drawn to scale. Right: fractions of the parameters."""
    parts = merge_equal(found.parts)
    count = total(found.parts, "parameters")
    title = f"{found.name}: {found.input}, {count:,} parameters"
    figure = new_figure(9.6, ROW * (len(parts) + 2) + 0.5, title)
    left, right = panels(figure, 1, 2, width_ratios=(3.2, 1), sharey=True)
    sections = list(dict.fromkeys(part.section for part in parts))
    colors = {name: COLORS[i % len(COLORS)] for i, name in enumerate(sections)}
    largest = max((max(map_size(part)[:2]) for part in parts), default=0)
    for row, part in enumerate(parts):
        _draw_part(left, row, part, colors[part.section], largest)
        _draw_bars(right, row, part, found, colors[part.section])
    for axes in (left, right):
        hide_frame(axes)
        axes.set_yticks([])
        axes.set_ylim(len(parts) - 0.3, -1.2)
    left.set_xlim(0, 10)
    left.set_xticks([])
    right.set_xlim(0, 1.45)
    right.set_xticks([])
    labels = [(left, 0.8, "part"), (left, 8.05, "output")]
    labels += [(left, 0.0, "map")] if largest else []
    for axes, x, label in labels:
        axes.text(x, -0.8, label, color=FAINT, va="center", fontsize=8)
    right.text(
        0, -0.8, "parameters (dark), operations (light)", color=FAINT, va="center", fontsize=8
    )
    return figure


def map_size(part: Part) -> tuple[int, int, int]:
    """Return height, width and channels of the output of a part; (0, 0, 0) if it is unknown."""
    numbers = [int(one) for one in re.findall(r"\d+", part.output)]
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else (0, 0, 0)


def _draw_part(axes: Axes, row: int, part: Part, color: str, largest: int) -> None:
    """Draw the map, the box with the name, and the output size of a part."""
    from matplotlib.patches import FancyBboxPatch, Rectangle

    height, width, _ = map_size(part)
    if height:
        tall, wide = (GLYPH * max(0.12, math.sqrt(one / largest)) for one in (height, width))
        wide *= 0.55
        axes.add_patch(
            Rectangle((0.3 - wide / 2, row - tall / 2), wide, tall, color=color, alpha=0.35)
        )
    box = FancyBboxPatch(
        (0.8, row - 0.33),
        6.9,
        0.66,
        boxstyle="round,pad=0.02,rounding_size=0.12",
        facecolor=color,
        edgecolor="none",
        alpha=0.12,
    )
    axes.add_patch(box)
    repeat = f"  x {part.repeat}" if part.repeat > 1 else ""
    axes.text(
        0.95, row, part.name + repeat, color=INK, va="center", fontsize=8.5, fontweight="bold"
    )
    axes.text(7.6, row, part.what, color=FAINT, va="center", ha="right", fontsize=8)
    axes.text(8.05, row, part.output, color=INK, va="center", fontsize=8.5)


def _draw_bars(axes: Axes, row: int, part: Part, found: Description, color: str) -> None:
    """Draw the fraction of the parameters and of the operations of a part."""
    fractions = []
    for field in ("parameters", "operations"):
        all_parts = total(found.parts, field) or 1
        fractions.append(getattr(part, field) * part.repeat / all_parts)
    axes.barh(row - 0.15, fractions[0], 0.26, color=color)
    axes.barh(row + 0.15, fractions[1], 0.26, color=color, alpha=0.35)
    count = part.parameters * part.repeat
    if count:
        axes.text(
            max(fractions) + 0.03,
            row,
            f"{count:,}",
            color=INK,
            va="center",
            fontsize=7.5,
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.5},
        )
