"""Plot of the gates of recurrent layers over the tokens: mean and 80 % range of the units."""

from typing import TYPE_CHECKING, Any

import numpy

from regard.views.figures.fonts import FontSet
from regard.views.figures.style import COLORS, INK, new_figure
from regard.views.inspection.figure_maps import rotate_labels
from regard.views.inspection.figure_views import axis_labels, select_layer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIGNED = ("cell", "new", "hidden")  # from -1 to 1; gates are from 0 (closed) to 1 (open)


def plot_gates(
    title: str, inspection: dict[str, Any], layer: int | None, fonts: FontSet
) -> "Figure":
    """Return a figure with one row per layer and direction, and one column per gate.

    layer: plot only this layer (0-based).
    """
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for entry in select_layer(inspection["gates"], layer, "with gates"):
        rows.setdefault((entry["name"], entry["direction"]), []).append(entry)
    num_columns = max(map(len, rows.values()))
    max_length = max(len(entry["mean"]) for row in rows.values() for entry in row)
    width = min(max(1.8, 0.16 * max_length), 4.0)
    figure = new_figure(num_columns * width + 0.9, 1.5 * len(rows) + 0.9, title)
    axes = figure.subplots(len(rows), num_columns, squeeze=False)
    for line, row in zip(axes, rows.values(), strict=True):
        for panel in line[len(row) :]:
            panel.remove()
        labels = axis_labels(inspection, row[0]["rows"], fonts)
        for panel, entry in zip(line, row, strict=False):
            _plot_gate(panel, entry, labels, width)
        direction = f"\n{row[0]['direction']}" if row[0]["direction"] != "forward" else ""
        line[0].set_ylabel(f"{row[0]['part']} {row[0]['layer']}{direction}", fontsize=8)
    return figure


def _plot_gate(axes: "Axes", entry: dict[str, Any], labels: list[str], width: float) -> None:
    """Plot the mean of a gate as a line, and the middle 80 % of its units as a band."""
    positions = range(len(entry["mean"]))
    if len(entry["units"]):
        low, high = numpy.quantile(numpy.asarray(entry["units"]), [0.1, 0.9], axis=1)
        axes.fill_between(positions, low, high, color=COLORS[3], alpha=0.3, linewidth=0)
    axes.plot(positions, entry["mean"], color=COLORS[0], marker="o", markersize=2.5)
    axes.set_ylim(-1.05 if entry["gate"] in SIGNED else -0.03, 1.05)
    axes.set_title(entry["gate"], fontsize=8.5)
    size = min(8.0, 0.8 * 72 * width / len(labels))
    if size >= 4:
        axes.set_xticks(positions, labels)
        axes.tick_params(axis="x", labelcolor=INK, length=0, labelsize=size)
        rotate_labels(axes, labels, 72 * width / len(labels) / (0.62 * size))
    axes.tick_params(axis="y", labelsize=7, length=0)
