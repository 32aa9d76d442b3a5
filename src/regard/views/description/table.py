"""A description as a table for the terminal, and as JSON."""

from dataclasses import asdict
from typing import Any

from regard.core.formatting import size
from regard.views.description.describe_model import Description
from regard.views.description.parts import Part, merge_equal, total

BYTES = 4  # per parameter, in float32
COLUMNS = ("part", "what", "output", "field", "parameters", "operations")
NUMBERS = ("parameters", "operations")


def table(found: Description) -> list[str]:
    """Return the lines of the table: a line per part, and the totals."""
    rows = [list(COLUMNS), *map(_row, merge_equal(found.parts))]
    if not any(row[3] for row in rows[1:]):
        rows = [[*row[:3], *row[4:]] for row in rows]
    names = rows[0]
    widths = [max(len(row[i]) for row in rows) for i in range(len(names))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if name in NUMBERS else cell.ljust(width)
            for cell, width, name in zip(row, widths, names, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return [lines[0], "-" * max(map(len, lines)), *lines[1:], *totals(found)]


def _row(part: Part) -> list[str]:
    """Return the cells of a part."""
    name = part.name + (f" ({part.repeat} times)" if part.repeat > 1 else "")
    field = "" if part.field is None else f"{part.field[0]} x {part.field[1]}"
    counts = [f"{getattr(part, name) * part.repeat:,}" for name in NUMBERS]
    return [name, part.what, part.output, field, *counts]


def totals(found: Description) -> list[str]:
    """Return the totals of all parts."""
    count = total(found.parts, "parameters")
    operations = total(found.parts, "operations")
    lines = [f"total: {count:,} parameters ({size(count * BYTES)} in float32)"]
    lines.append(f"total: {operations:,} multiply-adds per {found.per}")
    if found.per == "token":
        lines.append("note: without attention scores, whose number grows with the length")
    elif any(part.name.startswith("decoder") for part in found.parts):
        lines.append("note: operations of the decoder are those of one output token")
    return lines


def as_record(found: Description) -> dict[str, Any]:
    """Return the description for JSON."""
    return {
        **{"name": found.name, "task": found.task, "input": found.input},
        "parts": [asdict(part) for part in found.parts],
        "parameters": total(found.parts, "parameters"),
        "operations": total(found.parts, "operations"),
        "operations_per": found.per,
        "assumed": found.notes,
    }
