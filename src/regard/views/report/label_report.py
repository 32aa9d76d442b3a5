"""A run's answers in detail: tables by label or target, what is taken for what, calibration."""

from collections.abc import Sequence
from html import escape
from typing import Any

from rich.cells import cell_len

from regard.metrics.metric_names import LABELS
from regard.metrics.tables import confusion_names, truncate
from regard.storage.run_folder import Record, number
from regard.views.report.curves import LEFT, RIGHT, TOP, Scale, scales, short, ticks
from regard.views.report.html_parts import DASH, cells, dot, figure, level, section, svg, table
from regard.views.report.score_table import score_strip, shown

MOST_DOTS = 2000
_SIZE = (320, 300)
_BOTTOM = 40  # margin under a plot, in pixels
_LETTER = 5.8  # pixels of a letter in the confusion matrix, about
_OPEN_ROWS = 30  # a longer table is folded below


def details_section(details: Record) -> str:
    """Everything that `details` of the final record holds; an empty text if nothing is there.

    `spans`, `classes`, `numbers`: rows of tables; `confusion`, `reliability`: as in
    `regard.metrics`; `scatter`: pairs of the wanted and the predicted number.
    """
    plots = _reliability(details.get("reliability") or []) + _scatter(details.get("scatter") or [])
    return section(
        "Details",
        _class_table(details.get("spans") or []),
        _class_table(details.get("classes") or []),
        _number_table(details.get("numbers") or []),
        _confusion(details.get("confusion") or {}),
        f'<div class="plots">{plots}</div>' if plots else "",
        style="details",
    )


def _class_table(rows: Sequence[Record]) -> str:
    keys = ["count", "predicted", "precision", "recall", "f1"]
    head = cells(["examples", "given", "precision", "recall", "F1"], "th")
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
    """The name of a row and its numbers."""
    numbers = cells([_cell(key, row.get(key)) for key in keys])
    return f'<td dir="auto">{escape(str(row.get(name, "")))}</td>{numbers}'


def _table(head: str, rows: list[str]) -> str:
    """A table with these cells; rows after the first ones are folded."""
    if not rows:
        return ""
    lines = [f"<tr>{row}</tr>" for row in rows]
    found = table("scores by-label", head, lines[:_OPEN_ROWS])
    rest = lines[_OPEN_ROWS:]
    if rest:
        summary = f"<summary>{len(rest):,} more, less frequent</summary>"
        found += f"<details>{summary}{table('scores by-label', head, rest)}</details>"
    return found


def _cell(key: str, value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    measured = number(value)
    return shown(key, measured) if measured is not None else DASH


def _confusion(confusion: dict[str, Any]) -> str:
    """A heat map: each cell shaded by its share of the row, right ones in their own color."""
    if not confusion.get("labels"):
        return ""
    names = confusion_names(confusion)
    labels = [truncate(name, 20) for name in names]
    rows: list[list[int]] = confusion["rows"]
    digits = max(len(str(count)) for row in rows for count in row)
    widest = _LETTER * max(map(cell_len, labels))
    side = max(_LETTER * digits + 5, 44 if len(labels) <= 10 else 28)
    upright = widest > side - 6
    left, top = widest + 14, (widest + 14 if upright else 26)

    inside = []
    for place, label in enumerate(labels):
        middle = (place + 0.5) * side
        x, y, text = left + middle, top + middle, escape(label)
        inside.append(f'<text class="end" x="{left - 8:.1f}" y="{y + 4:.1f}">{text}</text>')
        turn = f' transform="rotate(-90 {x + 4:.1f} {top - 8:.1f})"' if upright else ""
        where = f'x="{x + (4 if upright else 0):.1f}" y="{top - 8:.1f}"{turn}'
        inside.append(f'<text class="{"start" if upright else "middle"}" {where}>{text}</text>')
    for right, row in enumerate(rows):
        for given, count in enumerate(row):
            x, y = left + given * side, top + right * side
            said = f"right {names[right]}, given {names[given]}: {count:,}"
            share = count / (sum(row) or 1)
            # Among joined labels nobody knows which were right.
            joined = bool(confusion.get("others")) and right == given == len(labels) - 1
            kind = "mixed" if joined else "hit" if right == given else "miss"
            inside.append(_square((x, y, side), share, str(count), said, kind))

    width, height = left + len(labels) * side + 2, top + len(labels) * side + 2
    said = "Confusion matrix; rows: right label, columns: given"
    drawn = svg((width, height), said, inside, after=f'width="{width:.0f}" ')
    return (
        '<figure class="matrix"><figcaption><span>Which label is taken for which</span>'
        '<span class="legend">rows: right label, columns: given</span></figcaption>'
        f'<div class="scroll">{drawn}</div></figure>'
    )


def _square(box: tuple[float, float, float], share: float, count: str, said: str, kind: str) -> str:
    x, y, side = box
    place = f'x="{x + 0.5:.1f}" y="{y + 0.5:.1f}" width="{side - 1:.1f}" height="{side - 1:.1f}"'
    if count == "0":
        return f'<rect class="cell" {place}/>'
    percent = f"{100 * share:.0f} % of the row"
    # Never so dark that the count in the cell cannot be read, in light and dark colors.
    return (
        f'<g><title>{escape(said)}, {percent}</title><rect class="cell" {place}/>'
        f'<rect class="{kind}" {place} fill-opacity="{0.06 + 0.5 * share:.2f}"/>'
        f'<text class="middle ink" x="{x + side / 2:.1f}" y="{y + side / 2 + 4:.1f}">'
        f"{count}</text></g>"
    )


def _reliability(rows: Sequence[Record]) -> str:
    """Accuracy over confidence, a bar for each bin, and the line where both are equal."""
    if not rows:
        return ""
    levels = [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    x_scale, y_scale = _scales(levels)
    bars = []
    for row in rows:
        sure, right = float(row["confidence"]), float(row["accuracy"])
        low, high = x_scale(row.get("low", sure - 5)), x_scale(row.get("high", sure + 5))
        top, at = y_scale(right), x_scale(sure)
        said = f"confidence {sure:.1f} %, right {right:.1f} %, {row['count']:,} examples"
        bars.append(
            f'<g><title>{said}</title><rect class="bar" x="{low + 1:.1f}" y="{top:.1f}" '
            f'width="{high - low - 2:.1f}" height="{y_scale(0) - top:.1f}"/>'
            f"{dot('dot s0', at, top)}</g>"
        )
    return _plot(
        "Is it as often right as it is sure?", levels, bars, ("confidence, %", "right, %"), "over"
    )


def _scatter(pairs: Sequence[Sequence[float]]) -> str:
    """Predicted over right numbers, on the same scale, and the line where both are equal."""
    found = [
        (wanted, given)
        for pair in pairs
        if (wanted := number(pair[0])) is not None and (given := number(pair[1])) is not None
    ]
    if not found:
        return ""
    values = [value for point in found for value in point]
    levels = ticks(min(values), max(values), 5)
    x_scale, y_scale = _scales(levels)
    shown_pairs = found[:: -(-len(found) // MOST_DOTS)]
    dots = [dot("dot s0", x_scale(x), y_scale(y), 2.2) for x, y in shown_pairs]
    title = "Predicted and right numbers"
    if len(dots) < len(found):
        title += f", {len(dots):,} of {len(found):,}"
    return _plot(title, levels, dots, ("right", "predicted"), "under")


def _scales(levels: list[float]) -> tuple[Scale, Scale]:
    ends = levels[0], levels[-1]
    return scales(_SIZE, ends, ends, bottom=_BOTTOM)


def _plot(
    title: str, levels: list[float], shapes: list[str], axes: tuple[str, str], line: str
) -> str:
    """A square plot with the same levels on both axes and its diagonal over or under the shapes."""
    x_scale, y_scale = _scales(levels)
    largest, (left, right, low) = max(map(abs, levels)), (LEFT, _SIZE[0] - RIGHT, y_scale.start)
    drawn = []
    for value in levels:
        x, text = x_scale(value), short(value, largest)
        drawn.append(level(left, right, y_scale(value), text))
        drawn.append(f'<text class="middle" x="{x:.1f}" y="{low + 16:.1f}">{text}</text>')
    diagonal = f'<path class="equal" d="M{left} {low} L{right} {y_scale.end}"/>'
    drawn += [*shapes, diagonal] if line == "over" else [diagonal, *shapes]
    drawn.append(f'<text class="end" x="{right}" y="{_SIZE[1] - 6}">{axes[0]} &rarr;</text>')
    drawn.append(f'<text class="start" x="{left + 4}" y="{TOP + 12}">&uarr; {axes[1]}</text>')
    return figure("plot", title, _SIZE, f"{title}; {axes[1]} over {axes[0]}", drawn)
