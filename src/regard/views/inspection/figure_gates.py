"""Gates of recurrent layers over the tokens: the mean of the units, and how far they differ."""

from typing import TYPE_CHECKING, Any

import numpy

from regard.views.figures.fonts import FontSet
from regard.views.figures.style import COLORS, INK, new_figure
from regard.views.inspection.figure_maps import turn
from regard.views.inspection.figure_views import chosen, tokens

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIGNED = ("cell", "new", "hidden")  # between -1 and 1; the others are open (1) or shut (0)


def draw_gates(
    title: str, inspection: dict[str, Any], layer: int | None, hand: FontSet
) -> "Figure":
    """A row a layer and direction, a column a gate; of one layer only where asked."""
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for entry in chosen(inspection["gates"], layer, "with gates"):
        rows.setdefault((entry["name"], entry["direction"]), []).append(entry)
    count = max(map(len, rows.values()))
    longest = max(len(entry["mean"]) for row in rows.values() for entry in row)
    wide = min(max(1.8, 0.16 * longest), 4.0)
    figure = new_figure(count * wide + 0.9, 1.5 * len(rows) + 0.9, title)
    axes = figure.subplots(len(rows), count, squeeze=False)
    for line, row in zip(axes, rows.values(), strict=True):
        for panel in line[len(row) :]:
            panel.remove()
        labels = tokens(inspection, row[0]["rows"], hand)
        for panel, entry in zip(line, row, strict=False):
            _gate(panel, entry, labels, wide)
        way = f"\n{row[0]['direction']}" if row[0]["direction"] != "forward" else ""
        line[0].set_ylabel(f"{row[0]['part']} {row[0]['layer']}{way}", fontsize=8)
    return figure


def _gate(axes: "Axes", entry: dict[str, Any], labels: list[str], wide: float) -> None:
    """One gate: the line is the mean, and eight of ten units are in the band, if they are known."""
    at = range(len(entry["mean"]))
    if len(entry["units"]):
        low, high = numpy.quantile(numpy.asarray(entry["units"]), [0.1, 0.9], axis=1)
        axes.fill_between(at, low, high, color=COLORS[3], alpha=0.3, linewidth=0)
    axes.plot(at, entry["mean"], color=COLORS[0], marker="o", markersize=2.5)
    axes.set_ylim(-1.05 if entry["gate"] in SIGNED else -0.03, 1.05)
    axes.set_title(entry["gate"], fontsize=8.5)
    size = min(8.0, 0.8 * 72 * wide / len(labels))
    if size >= 4:
        axes.set_xticks(at, labels)
        axes.tick_params(axis="x", labelcolor=INK, length=0, labelsize=size)
        turn(axes, labels, 72 * wide / len(labels) / (0.62 * size))
    axes.tick_params(axis="y", labelsize=7, length=0)
