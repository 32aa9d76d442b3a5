"""Of an inspection, the maps to draw: values with the symbols of their rows and columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.core.errors import UserError
from regard.views.figures.fonts import FontSet

PARTS = ("cross", "decoder", "encoder", "pool")  # of attention; the first that there is is shown
AXES = {"source": "source", "target": "answer", "inputs": "read by the decoder", "one": ""}


@dataclass(frozen=True)
class Heatmap:
    """values (T, S) with a label a row and a label a column."""

    title: str
    values: Sequence[Sequence[float]]
    rows: list[str]
    columns: list[str]
    row_name: str
    column_name: str


def symbols(inspection: dict[str, Any], axis: str, hand: FontSet) -> list[str]:
    """The labels of an axis."""
    if axis == "one":
        return [""]
    found = inspection["inputs"] if axis == "inputs" else inspection[axis]["symbols"]
    return [hand.label(symbol) for symbol in found]


def heads(
    inspection: dict[str, Any], part: str | None, layer: int | None, head: int | None, hand: FontSet
) -> list[list[Heatmap]]:
    """The maps of attention, a list a layer: of a part, of one layer or head where asked."""
    entries = inspection["attention"]
    part = part or next((part for part in PARTS if part in {one["part"] for one in entries}), None)
    entries = [entry for entry in entries if entry["part"] == part]
    if not entries:
        return []
    layers = [entry["layer"] for entry in entries]
    if layer is not None and layer not in layers:
        known = ", ".join(map(str, layers))
        raise UserError(f"--layer {layer}: the layers of {part} attention, from 0, are {known}")
    entries = [entry for entry in entries if layer in (None, entry["layer"])]
    count = min(len(entry["heads"]) for entry in entries)
    if head is not None and not 0 <= head < count:
        known = ", ".join(map(str, range(count)))
        raise UserError(f"--head {head}: the heads of {part} attention, from 0, are {known}")
    return [
        [
            _map(inspection, entry, hand, _title(entry, n), weights)
            for n, weights in enumerate(entry["heads"])
            if head in (None, n)
        ]
        for entry in entries
    ]


def alignment(inspection: dict[str, Any], hand: FontSet) -> Heatmap:
    """The mean over the heads of the last layer that looks at the source."""
    entry = [entry for entry in inspection["attention"] if entry["part"] == "cross"][-1]
    count = len(entry["heads"])
    mean = [
        [sum(weights) / count for weights in zip(*rows, strict=True)]
        for rows in zip(*entry["heads"], strict=True)
    ]
    of = f", layer {entry['layer']}, mean of {count} heads" if count > 1 else ""
    return _map(inspection, entry, hand, f"alignment{of}", mean)


def saliency(inspection: dict[str, Any], hand: FontSet) -> list[Heatmap]:
    """How much each symbol that was read bears on each answer, in shares of all that it read."""
    entries = [inspection["saliency"]]
    if entries[0].get("before"):
        entries.append(entries[0]["before"])
    rows = zip(*(entry["values"] for entry in entries), strict=True)
    totals = [sum(map(sum, row)) or 1.0 for row in rows]
    maps = []
    for entry in entries:
        values = [
            [x / total for x in row] for row, total in zip(entry["values"], totals, strict=True)
        ]
        maps.append(_map(inspection, entry, hand, "saliency, shares of a row", values))
    return maps


def _map(
    inspection: dict[str, Any],
    about: dict[str, Any],
    hand: FontSet,
    title: str,
    values: Sequence[Sequence[float]],
) -> Heatmap:
    """A map with the symbols and names of its axes."""
    rows, columns = about["rows"], about["columns"]
    labels = symbols(inspection, rows, hand), symbols(inspection, columns, hand)
    return Heatmap(title, values, *labels, AXES[rows], AXES[columns])


def _title(entry: dict[str, Any], head: int) -> str:
    """Which map of attention it is."""
    where = f"{entry['part']} attention, layer {entry['layer']}"
    return where if len(entry["heads"]) == 1 else f"{where}, head {head}"
