"""The heat maps of an inspection: values with tokens as labels of rows and columns."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.core.errors import UserError
from regard.views.figures.fonts import FontSet

PARTS = ("cross", "decoder", "encoder", "pooling")  # of attention; default: the first available one
AXES = {"source": "source", "target": "output", "inputs": "decoder input", "one": ""}


@dataclass(frozen=True)
class Heatmap:
    """Values (rows, columns) with one label per row and per column."""

    title: str
    values: np.ndarray
    rows: list[str]
    columns: list[str]
    row_name: str
    column_name: str
    hidden: tuple[str, ...] = ()  # per row, "1" for columns that cannot be attended to


def axis_labels(inspection: dict[str, Any], axis: str, fonts: FontSet) -> list[str]:
    """Return the tokens of an axis as labels. axis: a key of `AXES`."""
    if axis == "one":
        return [""]
    tokens = inspection["inputs"] if axis == "inputs" else inspection[axis]["tokens"]
    return [fonts.label(token) for token in tokens]


def select_layer(
    entries: list[dict[str, Any]], layer: int | None, what: str
) -> list[dict[str, Any]]:
    """Return the attention maps or gates of one layer, or of all if `layer` is None.

    Raise UserError if there is no such layer. what: describes the layers in the message.
    """
    layers = sorted({entry["layer"] for entry in entries})
    if layer is not None and layer not in layers:
        known = ", ".join(map(str, layers))
        raise UserError(f"--layer {layer}: expected a layer {what} (0-based): {known}")
    return [entry for entry in entries if layer in (None, entry["layer"])]


def attention_maps(
    inspection: dict[str, Any],
    part: str | None,
    layer: int | None,
    head: int | None,
    fonts: FontSet,
) -> list[list[Heatmap]]:
    """Return the attention maps of a model part, one list of heads per layer.

    part: by default, the first of `PARTS` with attention. layer, head: only this layer
    or head (0-based).
    """
    entries = inspection["attention"]
    part = part or next((part for part in PARTS if part in {one["part"] for one in entries}), None)
    entries = [entry for entry in entries if entry["part"] == part]
    if not entries:
        return []
    entries = select_layer(entries, layer, f"of {part} attention")
    count = min(len(entry["heads"]) for entry in entries)
    if head is not None and not 0 <= head < count:
        known = ", ".join(map(str, range(count)))
        raise UserError(f"--head {head}: expected a head of {part} attention (0-based): {known}")
    maps = []
    for entry in entries:
        implied = " (implied)" if entry.get("implied") else ""
        where = f"{part} attention{implied}, layer {entry['layer']}"
        several = len(entry["heads"]) > 1
        titles = [f"{where}, head {n}" if several else where for n in range(len(entry["heads"]))]
        heads = list(zip(titles, entry["heads"], strict=True))
        shown = heads if head is None else heads[head : head + 1]
        maps.append([_heatmap(inspection, entry, fonts, *one) for one in shown])
    return maps


def alignment_map(inspection: dict[str, Any], fonts: FontSet) -> Heatmap:
    """Return the cross-attention of the last layer, averaged over heads."""
    entry = [entry for entry in inspection["attention"] if entry["part"] == "cross"][-1]
    count = len(entry["heads"])
    of = f", layer {entry['layer']}, mean of {count} heads" if count > 1 else ""
    of = f" (implied){of}" if entry.get("implied") else of
    return _heatmap(inspection, entry, fonts, f"alignment{of}", np.mean(entry["heads"], 0))


def saliency_maps(inspection: dict[str, Any], fonts: FontSet) -> list[Heatmap]:
    """Return the saliency of source tokens and, if any, of decoder inputs.

    For each output token, the values of both maps together sum to 1.
    """
    saliency = inspection["saliency"]
    inputs = saliency.get("decoder_inputs")
    entries = [saliency, inputs] if inputs else [saliency]
    totals = np.hstack([entry["values"] for entry in entries]).sum(1, keepdims=True)
    totals[totals == 0] = 1.0
    title = "saliency, normalized per row"
    return [
        _heatmap(inspection, entry, fonts, title, np.asarray(entry["values"]) / totals)
        for entry in entries
    ]


def _heatmap(
    inspection: dict[str, Any], entry: dict[str, Any], fonts: FontSet, title: str, values: Any
) -> Heatmap:
    """Return a heat map with the tokens and names of both axes."""
    rows, columns = entry["rows"], entry["columns"]
    labels = axis_labels(inspection, rows, fonts), axis_labels(inspection, columns, fonts)
    hidden = tuple(entry.get("hidden", ()))
    return Heatmap(title, np.asarray(values), *labels, AXES[rows], AXES[columns], hidden)
