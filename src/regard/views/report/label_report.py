"""Report section on predictions: tables per label or target, confusion matrix, calibration."""

from collections.abc import Sequence
from html import escape
from typing import Any

from rich.cells import cell_len

from regard.metrics.metric_names import LABELS
from regard.metrics.tables import confusion_names, truncate
from regard.storage.run_folder import Record, number
from regard.views.report.curves import LEFT, RIGHT, TOP, Scale, scales, tick_label, ticks
from regard.views.report.html_parts import DASH, cells, dot, figure, level, section, svg, table
from regard.views.report.pictures import mistakes_table
from regard.views.report.score_table import format_score, score_strip

MAX_DOTS = 2000
_SIZE = (320, 300)
_BOTTOM = 40  # margin under a plot, in pixels
_CHAR_WIDTH = 5.8  # approximate pixels per character in the confusion matrix
_MAX_OPEN_ROWS = 30  # further rows are collapsed


def details_section(details: Record) -> str:
    """Return the section with all details, or an empty string if there are none.

    details: `details` in the final record of the log. Its keys `spans`, `classes` and `numbers`
    hold rows of tables. `confusion` and `reliability` are as in `regard.metrics`. `scatter` holds
    pairs of expected and predicted numbers.
    """
    plots = _reliability(details.get("reliability") or []) + _scatter(details.get("scatter") or [])
    return section(
        "Details",
        _class_table(details.get("spans") or []),
        _class_table(details.get("classes") or []),
        _number_table(details.get("numbers") or []),
        _confusion(details.get("confusion") or {}),
        mistakes_table(details.get("mistakes") or []),
        f'<div class="plots">{plots}</div>' if plots else "",
        style="details",
    )


def _class_table(rows: Sequence[Record]) -> str:
    keys = ["count", "predicted", "precision", "recall", "f1"]
    head = cells(["examples", "predicted", "precision", "recall", "F1"], "th")
    lines = []
    for row in rows:
        f1 = number(row.get("f1")) or 0.0
        strip = cells([score_strip(f1, (0.0, f1))], style="strip")
        lines.append(_line(row, "label", keys) + strip)
    return _table(f"<th>label</th>{head}<th class=strip>F1, 0 to 100</th>", lines)


def _number_table(rows: Sequence[Record]) -> str:
    keys = ["r2", "rmse", "mae"]
    head = "<th>target</th>" + "".join(
        f'<th class="number" title="{LABELS[key]}">{key.upper().replace("2", "&sup2;")}</th>'
        for key in keys
    )
    return _table(head, [_line(row, "target", keys) for row in rows])


def _line(row: Record, name: str, keys: Sequence[str]) -> str:
    """Return the table cells of a row: its name and its numbers. name, keys: keys of the row."""
    numbers = cells([_cell(key, row.get(key)) for key in keys])
    return f'<td dir="auto" translate="no">{escape(str(row.get(name, "")))}</td>{numbers}'


def _table(head: str, rows: list[str]) -> str:
    """Return a table of these rows; rows after the first `_MAX_OPEN_ROWS` are collapsed."""
    if not rows:
        return ""
    lines = [f"<tr>{row}</tr>" for row in rows]
    found = table("scores by-label", head, lines[:_MAX_OPEN_ROWS])
    rest = lines[_MAX_OPEN_ROWS:]
    if rest:
        summary = f"<summary>{len(rest):,} less frequent</summary>"
        found += f"<details>{summary}{table('scores by-label', head, rest)}</details>"
    return found


def _cell(key: str, value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    measured = number(value)
    return format_score(key, measured) if measured is not None else DASH


def _confusion(confusion: dict[str, Any]) -> str:
    """Plot a confusion matrix; the shade of a cell is its fraction of the row."""
    if not confusion.get("labels"):
        return ""
    names = confusion_names(confusion)
    labels = [truncate(name, 20) for name in names]
    rows: list[list[int]] = confusion["rows"]
    digits = max(len(str(count)) for row in rows for count in row)
    widest = _CHAR_WIDTH * max(map(cell_len, labels))
    side = max(_CHAR_WIDTH * digits + 5, 44 if len(labels) <= 10 else 28)
    upright = widest > side - 6
    left, top = widest + 14, (widest + 14 if upright else 26)

    shapes = []
    for index, label in enumerate(labels):
        middle = (index + 0.5) * side
        x, y, text = left + middle, top + middle, escape(label)
        mark = 'translate="no" '
        shapes.append(f'<text {mark}class="end" x="{left - 8:.1f}" y="{y + 4:.1f}">{text}</text>')
        turn = f' transform="rotate(-90 {x + 4:.1f} {top - 8:.1f})"' if upright else ""
        where = f'x="{x + (4 if upright else 0):.1f}" y="{top - 8:.1f}"{turn}'
        anchor = "start" if upright else "middle"
        shapes.append(f'<text {mark}class="{anchor}" {where}>{text}</text>')
    for true, row in enumerate(rows):
        for predicted, count in enumerate(row):
            x, y = left + predicted * side, top + true * side
            text = f"expected {names[true]}, predicted {names[predicted]}: {count:,}"
            fraction = count / (sum(row) or 1)
            # The cell of merged labels counts correct and wrong predictions.
            joined = bool(confusion.get("others")) and true == predicted == len(labels) - 1
            kind = "mixed" if joined else "hit" if true == predicted else "miss"
            shapes.append(_square((x, y, side), fraction, str(count), text, kind))

    width, height = left + len(labels) * side + 2, top + len(labels) * side + 2
    description = "Confusion matrix; rows: expected, columns: predicted"
    matrix = svg((width, height), description, shapes, after=f'width="{width:.0f}" ')
    return (
        '<figure class="matrix"><figcaption><span>Confusion matrix</span>'
        '<span class="legend">rows: expected, columns: predicted</span></figcaption>'
        f'<div class="scroll">{matrix}</div></figure>'
    )


def _square(
    box: tuple[float, float, float], fraction: float, count: str, text: str, kind: str
) -> str:
    x, y, side = box
    position = f'x="{x + 0.5:.1f}" y="{y + 0.5:.1f}" width="{side - 1:.1f}" height="{side - 1:.1f}"'
    if count == "0":
        return f'<rect class="cell" {position}/>'
    percent = f"{100 * fraction:.0f} % of the row"
    # Limited opacity keeps the count readable in both themes.
    return (
        f'<g><title>{escape(text)}, {percent}</title><rect class="cell" {position}/>'
        f'<rect class="{kind}" {position} fill-opacity="{0.06 + 0.5 * fraction:.2f}"/>'
        f'<text class="middle ink" x="{x + side / 2:.1f}" y="{y + side / 2 + 4:.1f}">'
        f"{count}</text></g>"
    )


def _reliability(rows: Sequence[Record]) -> str:
    """Plot a reliability diagram: accuracy over confidence, with the diagonal."""
    if not rows:
        return ""
    levels = [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    x_scale, y_scale = _scales(levels)
    bars = []
    for row in rows:
        confidence, accuracy = float(row["confidence"]), float(row["accuracy"])
        low, high = (
            x_scale(row.get("low", confidence - 5)),
            x_scale(row.get("high", confidence + 5)),
        )
        top, at = y_scale(accuracy), x_scale(confidence)
        text = (
            f"confidence {confidence:.1f} %, accuracy {accuracy:.1f} %, {row['count']:,} examples"
        )
        bars.append(
            f'<g><title>{text}</title><rect class="bar" x="{low + 1:.1f}" y="{top:.1f}" '
            f'width="{high - low - 2:.1f}" height="{y_scale(0) - top:.1f}"/>'
            f"{dot('dot s0', at, top)}</g>"
        )
    return _plot(
        "Calibration (reliability diagram)", levels, bars, ("confidence, %", "accuracy, %"), "over"
    )


def _scatter(pairs: Sequence[Sequence[float]]) -> str:
    """Plot predicted over expected numbers on equal axes, with the diagonal."""
    found = [
        (true, predicted)
        for pair in pairs
        if (true := number(pair[0])) is not None and (predicted := number(pair[1])) is not None
    ]
    if not found:
        return ""
    values = [value for point in found for value in point]
    levels = ticks(min(values), max(values), 5)
    x_scale, y_scale = _scales(levels)
    shown_pairs = found[:: -(-len(found) // MAX_DOTS)]
    dots = [dot("dot s0", x_scale(x), y_scale(y), 2.2) for x, y in shown_pairs]
    title = "Predicted and expected values"
    if len(dots) < len(found):
        title += f", {len(dots):,} of {len(found):,}"
    return _plot(title, levels, dots, ("expected", "predicted"), "under")


def _scales(levels: list[float]) -> tuple[Scale, Scale]:
    ends = levels[0], levels[-1]
    return scales(_SIZE, ends, ends, bottom=_BOTTOM)


def _plot(
    title: str, levels: list[float], shapes: list[str], axes: tuple[str, str], line: str
) -> str:
    """Return a plot with equal axes. line: whether the diagonal is "over" or "under" the shapes."""
    x_scale, y_scale = _scales(levels)
    largest, (left, right, low) = max(map(abs, levels)), (LEFT, _SIZE[0] - RIGHT, y_scale.start)
    parts = []
    for value in levels:
        x, text = x_scale(value), tick_label(value, largest)
        parts.append(level(left, right, y_scale(value), text))
        parts.append(f'<text class="middle" x="{x:.1f}" y="{low + 16:.1f}">{text}</text>')
    diagonal = f'<path class="equal" d="M{left} {low} L{right} {y_scale.end}"/>'
    parts += [*shapes, diagonal] if line == "over" else [diagonal, *shapes]
    parts.append(f'<text class="end" x="{right}" y="{_SIZE[1] - 6}">{axes[0]} &rarr;</text>')
    parts.append(f'<text class="start" x="{left + 4}" y="{TOP + 12}">&uarr; {axes[1]}</text>')
    return figure("plot", title, _SIZE, f"{title}; {axes[1]} over {axes[0]}", parts)
