"""The figure of a neighborhood in a graph: edges are as wide as their attention."""

from typing import TYPE_CHECKING, Any

import numpy as np

from regard.views.figures.fonts import FontSet
from regard.views.figures.graph_plot import draw
from regard.views.figures.style import FAINT, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 6.0  # inches


def plot_graph(
    title: str, inspection: dict[str, Any], layer: int | None, head: int | None, fonts: FontSet
) -> "Figure":
    """Return the figure of the neighborhood that an inspection has.

    layer, head: of the attention drawn on the edges; by default, the mean of all heads of the first
    layer.
    """
    graph = inspection["graph"]
    figure = new_figure(SIDE + 1.6, SIDE, title)
    axes = figure.subplots()
    places = np.asarray(graph["positions"])
    weights, what = edge_weights(inspection, layer, head)
    draw(axes, graph, places, weights, node_sizes(inspection), fonts)
    remark = f"edges: {what}; " if what else ""
    axes.set_xlabel(f"{remark}size of a node: its saliency", color=FAINT, fontsize=8)
    return figure


def edge_weights(
    inspection: dict[str, Any], layer: int | None, head: int | None
) -> tuple[np.ndarray | None, str]:
    """Return the attention of each edge, in its stronger direction, and what it is."""
    maps = [one for one in inspection["attention"] if one["part"] == "encoder"]
    maps = [one for one in maps if layer is None or one["layer"] == layer]
    if not maps:
        return None, ""
    heads = np.asarray(maps[0]["heads"])
    values = heads.mean(0) if head is None else heads[head]
    ends = np.asarray(inspection["graph"]["edges"], int).reshape(-1, 2)
    both = values[ends[:, 0], ends[:, 1]], values[ends[:, 1], ends[:, 0]]
    which = "mean of all heads" if head is None else f"head {head}"
    return np.maximum(*both), f"attention of layer {maps[0]['layer']}, {which}"


def node_sizes(inspection: dict[str, Any]) -> np.ndarray:
    """Return the saliency of each node, the largest 1."""
    saliency = inspection["saliency"]
    if saliency is None:
        return np.ones(len(inspection["graph"]["nodes"]))
    values = np.asarray(saliency["values"], float).sum(0)
    return values / (values.max() or 1.0)
