"""Line plots as inline SVG, with their values as JSON for tooltips."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from regard.views.report.html_parts import dot, figure, level

Point = tuple[float, float]

MAX_POINTS = 500
NUM_COLORS = 8  # of lines in compare.css; further lines are dashed and repeat the colors
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 10, 24  # margins around the plot, in pixels


@dataclass(frozen=True)
class Series:
    """One line of a plot: the name in the legend and the points (x, y)."""

    name: str
    points: list[Point]


@dataclass(frozen=True)
class Scale:
    """A linear map from values (low to high) to pixels (start to end)."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        fraction = (value - self.low) / (self.high - self.low)
        return self.start + fraction * (self.end - self.start)


def plot_curves(
    title: str,
    series: Sequence[Series],
    size: tuple[int, int] = (460, 220),
    mark: Point | None = None,
    note: str = "",
    from_zero: bool = True,
    axis: str = "step",
) -> str:
    """Return a figure (HTML) with one line per series, or an empty string if no series has points.

    size: width and height in pixels. mark: a point to highlight, such as the best one. note: text
    instead of the legend. from_zero: whether the y axis includes 0. axis: name of the x axis.
    """
    styles = [line_style(index) for index, line in enumerate(series) if line.points]
    lines = [Series(line.name, downsample(line.points)) for line in series if line.points]
    if not lines:
        return ""
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    levels = ticks(min([*ys, 0.0]) if from_zero else min(ys), max(ys))
    x_scale, y_scale = scales(size, (0.0, max(xs) or 1.0), (levels[0], levels[-1]))

    shapes = _grid(levels, x_scale, y_scale, axis)
    for line, style in zip(lines, styles, strict=True):
        pixels = [(x_scale(x), y_scale(y)) for x, y in line.points]
        shapes.append(plot_line(pixels, style))
    if mark:
        shapes.append(dot("best", x_scale(mark[0]), y_scale(mark[1]), 4.5))
    return figure(
        "curve",
        escape(title),
        size,
        f"{escape(title)} by {axis}",
        shapes,
        _legend(lines, styles, note),
        _values_json(lines, styles, x_scale, y_scale, axis),
    )


def scales(
    size: tuple[int, int],
    x_range: Point,
    y_range: Point,
    right: int = RIGHT,
    bottom: int = BOTTOM,
) -> tuple[Scale, Scale]:
    """Return the x and y scales of a plot of this size. right, bottom: margins of the plot."""
    return Scale(*x_range, LEFT, size[0] - right), Scale(*y_range, size[1] - bottom, TOP)


def plot_line(pixels: list[Point], style: str) -> str:
    """Return an SVG line through all points, or a dot if there is only one point."""
    if len(pixels) == 1:
        return dot(f"dot {style}", *pixels[0])
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in pixels)
    return f'<polyline class="line {style}" points="{path}"/>'


def downsample(points: list[Point]) -> list[Point]:
    """Return at most `MAX_POINTS` points, each the mean y of a group at its last x."""
    group = math.ceil(len(points) / MAX_POINTS)
    if group <= 1:
        return points
    groups = [points[start : start + group] for start in range(0, len(points), group)]
    return [(part[-1][0], sum(y for _, y in part) / len(part)) for part in groups]


def ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Return about `count` round numbers that cover the range from `low` to `high`."""
    if high <= low:
        low, high = low - (abs(low) / 2 or 1.0), high + (abs(high) / 2 or 1.0)
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    gap = power * next(factor for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.floor(low / gap + 1e-9), math.ceil(high / gap - 1e-9)
    return [n * gap for n in range(first, last + 1)]


def tick_label(value: float, largest: float) -> str:
    """Return a tick label such as 20k, 0.5 or 3e-4. largest: maximum of the axis."""
    if value == 0:
        return "0"
    if largest >= 1e6:
        return f"{value / 1e6:g}M"
    if largest >= 1e4:
        return f"{value / 1e3:g}k"
    if largest < 0.01:
        digits, exponent = f"{value:.1e}".split("e")
        return f"{digits.removesuffix('.0')}e{int(exponent)}"
    return f"{value:,.6g}"


def line_style(index: int) -> str:
    """Return the CSS classes of the line with this index."""
    return f"s{index % NUM_COLORS}" + (" dashed" if index >= NUM_COLORS else "")


def run_label(index: int, name: str) -> str:
    """Return the color and name of a run as HTML."""
    return f'<i class="swatch {line_style(index)}"></i><span translate="no">{escape(name)}</span>'


def _grid(levels: list[float], x_scale: Scale, y_scale: Scale, axis: str) -> list[str]:
    largest = max(map(abs, levels))
    left, right = float(x_scale.start), float(x_scale.end)
    parts = [level(left, right, y_scale(value), tick_label(value, largest)) for value in levels]
    count = round((x_scale.end - x_scale.start) / 80)
    steps = [step for step in ticks(0.0, x_scale.high, count) if step <= x_scale.high]
    for step in steps:
        anchor = "start" if step == 0 else "end" if x_scale(step) > x_scale.end - 14 else "middle"
        label = f"{axis} 0" if step == 0 else tick_label(step, steps[-1])
        parts.append(
            f'<text class="x {anchor}" x="{x_scale(step):.1f}" '
            f'y="{y_scale.start + 17:.1f}">{label}</text>'
        )
    return parts


def _legend(lines: list[Series], styles: list[str], note: str) -> str:
    named = zip(lines, styles, strict=True)
    names = [f'<i class="{style}"></i>{escape(line.name)}' for line, style in named]
    text = escape(note) if note or len(lines) == 1 else " ".join(names)
    return f'<span class="legend">{text}</span>'


def _values_json(
    lines: list[Series], styles: list[str], x_scale: Scale, y_scale: Scale, axis: str
) -> str:
    """Return the plotted values and the scales as JSON, escaped for a script element."""
    data = {
        "series": [{"name": line.name, "points": line.points} for line in lines],
        "x": [x_scale.low, x_scale.high, x_scale.start, x_scale.end],
        "y": [y_scale.low, y_scale.high, y_scale.start, y_scale.end],
        "styles": styles,
        "axis": axis,
    }
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json">{text}</script>'
