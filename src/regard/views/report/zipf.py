"""Rank-frequency plot of the n-grams of the training data: a straight line under Zipf's law.

Zipf 1949: the count of the r-th most frequent word is about proportional to 1 / r.
"""

import math
from html import escape
from typing import Any

from regard.storage.run_folder import Record, number
from regard.views.report.curves import LEFT, TOP, Point, Series, plot_line, scales
from regard.views.report.html_parts import DASH, cells, figure, level, section, svg, table

COUNTS = (
    "zipf",
    "ngrams",
    "ngram_zipf",
)  # keys of check.json that are plotted here instead of listed as text
_SIZE = (460, 300)
_RIGHT, _BOTTOM = 12, 40  # margins around the plot, in pixels
_TITLE = "Rank-frequency plot (log-log)"

# For the standalone figure: the light theme of base.css.
_STYLE = """
svg { background: #fcfcfa; font-family: system-ui, "Segoe UI", Roboto, sans-serif; }
text { font-size: 11px; fill: #666c74; }
.y, .end { text-anchor: end; } .middle { text-anchor: middle; }
.grid { stroke: #e2e3de; stroke-width: 1; }
.line { fill: none; stroke-width: 1.7; stroke-linejoin: round; stroke: currentColor; }
.dot { fill: currentColor; }
.s0 { color: #2b5fc9; } .s1 { color: #d0651c; } .s2 { color: #17774a; }
"""


def zipf_section(check: Record) -> str:
    """Return the plot and a table of n-gram counts, or an empty string without counts.

    check: content of check.json.
    """
    lines = _series(check)
    plot = figure("zipf", _TITLE, _SIZE, _description(lines), _shapes(lines)) if lines else ""
    inside = plot + _table(check.get("ngrams") or [])
    return section("Frequencies", f'<div class="zipfs">{inside}</div>' if inside else "")


def zipf_svg(check: Record) -> str:
    """Return the plot as a standalone SVG file, or an empty string without counts."""
    lines = _series(check)
    if not lines:
        return ""
    paper = f'<style>{_STYLE}</style><rect width="{_SIZE[0]}" height="{_SIZE[1]}" fill="#fcfcfa"/>'
    space = f'xmlns="http://www.w3.org/2000/svg" width="{2 * _SIZE[0]}" height="{2 * _SIZE[1]}" '
    return svg(_SIZE, _description(lines), [paper, *_shapes(lines)], before=space) + "\n"


def _series(check: Record) -> list[Series]:
    """Return points (rank, count) of unigrams, bigrams and trigrams, or of unigrams only."""
    counted = check.get("ngram_zipf") or {"1": check.get("zipf") or []}
    lines = []
    for n in ("1", "2", "3"):
        points = [
            (rank, count)
            for pair in counted.get(n) or []
            if (rank := number(pair[0])) and (count := number(pair[1])) and min(rank, count) > 0
        ]
        if points:
            lines.append(Series(f"{n}-grams", points))
    return lines


def _shapes(lines: list[Series]) -> list[str]:
    """Return the SVG elements of the plot: grid, lines and legend on log-log axes."""
    x_decades, y_decades = (
        _decades([p[at] for line in lines for p in line.points]) for at in (0, 1)
    )
    x_range, y_range = (x_decades[0], x_decades[-1]), (y_decades[0], y_decades[-1])
    x_scale, y_scale = scales(_SIZE, x_range, y_range, _RIGHT, _BOTTOM)
    low, right = _SIZE[1] - _BOTTOM, _SIZE[0] - _RIGHT

    parts = [level(LEFT, right, y_scale(power), _power(power)) for power in y_decades]
    for power in x_decades:
        x = x_scale(power)
        anchor = "end" if power == x_decades[-1] else "middle"
        parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{low}"/>')
        parts.append(
            f'<text class="{anchor}" x="{x:.1f}" y="{low + 16:.1f}">{_power(power)}</text>'
        )
    parts.append(f'<text class="end" x="{right}" y="{_SIZE[1] - 6}">rank &#8594;</text>')
    parts.append(f'<text x="{LEFT + 5}" y="{low - 6}">&#8593; count</text>')
    for index, line in enumerate(lines):
        pixels = [(x_scale(math.log10(x)), y_scale(math.log10(y))) for x, y in line.points]
        parts.append(plot_line(_downsample(pixels), f"s{index}"))
    return [*parts, *_legend(lines)]


def _legend(lines: list[Series]) -> list[str]:
    """Return the legend in the upper right corner, which the falling lines do not reach."""
    parts = []
    for index, line in enumerate(lines):
        x, y = _SIZE[0] - _RIGHT - 8, TOP + 16 + 17 * index
        parts.append(f'<path class="line s{index}" d="M{x - 16} {y - 4}h16"/>')
        parts.append(f'<text class="end" x="{x - 22}" y="{y}">{line.name}</text>')
    return parts


def _downsample(pixels: list[Point]) -> list[Point]:
    """Return the points that are at least a pixel apart, and the last point."""
    if len(pixels) == 1:
        return pixels
    kept = [pixels[0]]
    for pixel in pixels[1:-1]:
        if math.dist(pixel, kept[-1]) >= 1:
            kept.append(pixel)
    return [*kept, pixels[-1]]


def _decades(values: list[float]) -> list[int]:
    """Return the exponents of the powers of ten that cover all values, at least two."""
    low = math.floor(math.log10(min(values)) + 1e-9)
    high = math.ceil(math.log10(max(values)) - 1e-9)
    return list(range(low, max(high, low + 1) + 1))


def _power(power: int) -> str:
    if power < 4:
        return f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
    return f"{10 ** (power % 3):,}{'kMGT'[power // 3 - 1]}" if power < 15 else f"1e{power}"


def _description(lines: list[Series]) -> str:
    return f"{_TITLE}: {', '.join(line.name for line in lines)}"


def _table(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    lines = []
    for row in rows:
        total, distinct, once = (int(row.get(key) or 0) for key in ("total", "distinct", "once"))
        fraction = f"{100 * once / distinct:.0f} %" if distinct else DASH
        rare = f'{once:,} <span class="note">({fraction})</span>'
        counts = cells([f"{total:,}", f"{distinct:,}", rare])
        lines.append(f"<tr><td>{escape(str(row.get('n')))}-grams</td>{counts}</tr>")
    heads = cells(["total", "distinct", "hapaxes"], "th")
    return table("scores", f"<th>n-grams</th>{heads}", lines)
