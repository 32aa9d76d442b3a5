"""Tables and confusion matrices as plain text for the terminal."""

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size

WIDTH = 100  # cells per terminal line
_MAX_CONFUSIONS = 15
_MIN_LABEL_WIDTH = 8  # in cells
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return the lines of an aligned table. The keys of the rows are the header."""
    if not rows:
        return []
    names = list(rows[0])
    cells = [names, *([_shown(name, row[name]) for name in names] for row in rows)]
    widths = [max(cell_len(line[i]) for line in cells) for i in range(len(names))]
    is_text = [isinstance(rows[0][name], str) for name in names]
    return [
        "  ".join(
            _left(cell, width) if text else _right(cell, width)
            for cell, width, text in zip(line, widths, is_text, strict=True)
        ).rstrip()
        for line in cells
    ]


def confusion_lines(confusion: dict[str, Any]) -> list[str]:
    """Return the lines of a confusion matrix: rows are expected labels, columns predicted labels.

    A `.` replaces 0. If the labels do not fit above their columns, letters replace them. If the
    matrix is still too wide, the most frequent confusions are listed instead.
    """
    labels, rows = confusion_names(confusion), confusion["rows"]
    counts = [[str(count) if count else "." for count in row] for row in rows]
    digits = max((len(cell) for row in counts for cell in row), default=1)
    title = "rows: expected, columns: predicted"

    named = [max(cell_len(label), digits) for label in labels]
    widest = max(map(cell_len, labels), default=0)
    if widest + sum(named) + 2 * len(named) <= WIDTH:
        lines = [[_left("", widest), *labels]]
        lines += [[_left(label, widest), *row] for label, row in zip(labels, counts, strict=True)]
        return [title, *_grid(lines, named)]

    room = min(widest, WIDTH - 4 - len(labels) * (digits + 2))
    if len(labels) > len(_LETTERS) or room < min(widest, _MIN_LABEL_WIDTH):
        return _worst(labels, rows, confusion.get("others", 0))
    lines = [[_left("", room + 4), *_LETTERS[: len(labels)]]]
    for letter, label, row in zip(_LETTERS, labels, counts, strict=False):
        lines.append([f"{letter} = {_left(label, room)}", *row])
    return [title, *_grid(lines, [digits] * len(labels))]


def confusion_names(confusion: dict[str, Any]) -> list[str]:
    """Return the labels of a confusion matrix on one line each, merged ones as "others (12)"."""
    labels = [_one_line(label) for label in confusion["labels"]]
    if confusion.get("others"):
        labels[-1] = f"others ({confusion['others']})"
    return labels


def truncate(text: str, width: int) -> str:
    """Return the text, truncated to `width` cells with "..." at the end if it is longer."""
    return text if cell_len(text) <= width else set_cell_size(text, width - 3) + "..."


def _worst(labels: list[str], rows: list[list[int]], others: int) -> list[str]:
    """Return a line per confusion, the most frequent ones only, without merged labels."""
    if others:
        labels, rows = labels[:-1], [row[:-1] for row in rows[:-1]]
    names = [truncate(label, 40) for label in labels]
    found = [
        (count, f"{names[expected]} -> {names[predicted]}")
        for expected, row in enumerate(rows)
        for predicted, count in enumerate(row)
        if count and expected != predicted
    ]
    without = f", without the {others} rarest labels" if others else ""
    if not found:
        return [f"no confusions{without}"]
    found = sorted(found, key=lambda pair: (-pair[0], pair[1]))
    shown = found[:_MAX_CONFUSIONS]
    title = (
        f"most frequent confusions, expected -> predicted ({len(shown)} of {len(found)}{without})"
    )
    return [title, *(f"{text}: {count}" for count, text in shown)]


def _grid(lines: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Return aligned lines. The first cell of each line must already have its full width."""
    return [
        "  ".join(
            [line[0], *(_right(cell, width) for cell, width in zip(line[1:], widths, strict=True))]
        ).rstrip()
        for line in lines
    ]


def _shown(name: str, value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if name in {"r2", "rmse", "mae"} else f"{value:.1f}"
    return f"{value:,}" if isinstance(value, int) else _one_line(value)


def _one_line(value: object) -> str:
    return " ".join(str(value).split())


def _left(text: str, width: int) -> str:
    return set_cell_size(truncate(text, width), width)


def _right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text
