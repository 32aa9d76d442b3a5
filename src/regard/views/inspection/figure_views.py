"""Of an inspection, the maps to draw: values with the tokens of their rows and columns."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.core.errors import UserError
from regard.views.figures.fonts import FontSet

PARTS = ("cross", "decoder", "encoder", "pool")  # of attention; the first that there is is shown
AXES = {"source": "source", "target": "answer", "inputs": "read by the decoder", "one": ""}


@dataclass(frozen=True)
class Heatmap:
    """values (T, S) with a label a row and a label a column."""

    title: str
    values: np.ndarray
    rows: list[str]
    columns: list[str]
    row_name: str
    column_name: str


def tokens(inspection: dict[str, Any], axis: str, hand: FontSet) -> list[str]:
    """The labels of an axis."""
    if axis == "one":
        return [""]
    found = inspection["inputs"] if axis == "inputs" else inspection[axis]["tokens"]
    return [hand.label(token) for token in found]


def chosen(entries: list[dict[str, Any]], layer: int | None, what: str) -> list[dict[str, Any]]:
    """Of attention or gates those of one layer, where that is asked for."""
    layers = sorted({entry["layer"] for entry in entries})
    if layer is not None and layer not in layers:
        known = ", ".join(map(str, layers))
        raise UserError(f"--layer {layer}: the layers {what}, from 0, are {known}")
    return [entry for entry in entries if layer in (None, entry["layer"])]


def heads(
    inspection: dict[str, Any], part: str | None, layer: int | None, head: int | None, hand: FontSet
) -> list[list[Heatmap]]:
    """The maps of attention, a list a layer: of a part, of one layer or head where asked."""
    entries = inspection["attention"]
    part = part or next((part for part in PARTS if part in {one["part"] for one in entries}), None)
    entries = [entry for entry in entries if entry["part"] == part]
    if not entries:
        return []
    entries = chosen(entries, layer, f"of {part} attention")
    count = min(len(entry["heads"]) for entry in entries)
    if head is not None and not 0 <= head < count:
        known = ", ".join(map(str, range(count)))
        raise UserError(f"--head {head}: the heads of {part} attention, from 0, are {known}")
    found = []
    for entry in entries:
        where = f"{part} attention, layer {entry['layer']}"
        several = len(entry["heads"]) > 1
        titles = [f"{where}, head {n}" if several else where for n in range(len(entry["heads"]))]
        both = list(zip(titles, entry["heads"], strict=True))
        shown = both if head is None else both[head : head + 1]
        found.append([_map(inspection, entry, hand, *one) for one in shown])
    return found


def alignment(inspection: dict[str, Any], hand: FontSet) -> Heatmap:
    """The mean over the heads of the last layer that attends to the source."""
    entry = [entry for entry in inspection["attention"] if entry["part"] == "cross"][-1]
    count = len(entry["heads"])
    of = f", layer {entry['layer']}, mean of {count} heads" if count > 1 else ""
    return _map(inspection, entry, hand, f"alignment{of}", np.mean(entry["heads"], 0))


def saliency(inspection: dict[str, Any], hand: FontSet) -> list[Heatmap]:
    """How much each token that was read bears on each answer, in shares of all that it read."""
    one = inspection["saliency"]
    entries = [one, one["before"]] if one.get("before") else [one]
    totals = np.hstack([entry["values"] for entry in entries]).sum(1, keepdims=True)
    totals[totals == 0] = 1.0
    title = "saliency, shares of a row"
    return [_map(inspection, e, hand, title, np.asarray(e["values"]) / totals) for e in entries]


def _map(
    inspection: dict[str, Any], about: dict[str, Any], hand: FontSet, title: str, values: Any
) -> Heatmap:
    """A map with the tokens and names of its axes."""
    rows, columns = about["rows"], about["columns"]
    labels = tokens(inspection, rows, hand), tokens(inspection, columns, hand)
    return Heatmap(title, np.asarray(values), *labels, AXES[rows], AXES[columns])
