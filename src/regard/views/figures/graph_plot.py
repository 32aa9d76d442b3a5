"""Drawings of graphs: nodes in the color of their label, edges as wide as their weight.

N nodes.
"""

import math
from typing import Any

import numpy as np

from regard.views.figures.fonts import FontSet
from regard.views.figures.style import COLORS, FAINT, INK

ROUNDS = 200  # iterations of the layout
MAX_NAMED = 60  # nodes with a name in the figure
MIN_WIDTH, MAX_WIDTH = 0.6, 6.0  # points
MIN_SIZE, MORE_SIZE = 40, 260  # square points


def draw(
    axes: Any,
    graph: dict[str, Any],
    places: np.ndarray,
    weights: np.ndarray | None,
    sizes: np.ndarray,
    fonts: FontSet,
) -> None:
    """Draw a graph. weights: of the edges; None: all edges are alike."""
    widths = np.full(len(graph["edges"]), 1.0)
    if weights is not None and len(weights):
        widths = MIN_WIDTH + (MAX_WIDTH - MIN_WIDTH) * weights / (weights.max() or 1.0)
    for (a, b), width in zip(graph["edges"], widths, strict=True):
        axes.plot(*places[[a, b]].T, color=FAINT, linewidth=width, zorder=1, alpha=0.6)
    known = sorted(set(graph["labels"]))
    for number, label in enumerate(known):
        some = [i for i, one in enumerate(graph["labels"]) if one == label]
        outlines = [INK if i < graph["explained"] else "white" for i in some]
        axes.scatter(
            *places[some].T,
            s=MIN_SIZE + MORE_SIZE * sizes[some],
            color=COLORS[number % len(COLORS)],
            edgecolors=outlines,
            linewidths=[2.0 if i < graph["explained"] else 0.5 for i in some],
            label=fonts.label(label),
            zorder=2,
        )
    for i, name in enumerate(graph["nodes"][:MAX_NAMED]):
        above = (0, 3 + 0.5 * math.sqrt(MIN_SIZE + MORE_SIZE * sizes[i]))  # points
        axes.annotate(
            fonts.label(name), places[i], above, textcoords="offset points", ha="center", fontsize=7
        )
    axes.set(xticks=[], yticks=[])
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_aspect("equal")
    axes.margins(0.08)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, markerscale=0.6)


def layout(count: int, edges: list[list[int]]) -> np.ndarray:
    """Return places (N, 2): neighbors attract, all nodes repel (Fruchterman and Reingold 1991)."""
    rng = np.random.default_rng(0)
    angles = 2 * math.pi * np.arange(count) / max(1, count)
    places = np.stack([np.cos(angles), np.sin(angles)], 1) + 0.01 * rng.normal(size=(count, 2))
    ends = np.asarray(edges, int).reshape(-1, 2)
    ideal = 1.0 / math.sqrt(max(1, count))
    for step in range(ROUNDS):
        difference = places[:, None] - places[None]  # (N, N, 2)
        distance = np.maximum(np.linalg.norm(difference, axis=-1), 1e-3)
        force = (difference * (ideal**2 / distance**2)[..., None]).sum(1)
        along = places[ends[:, 0]] - places[ends[:, 1]]
        pull = along * (np.linalg.norm(along, axis=-1) / ideal)[:, None]
        np.add.at(force, ends[:, 0], -pull)
        np.add.at(force, ends[:, 1], pull)
        size = np.maximum(np.linalg.norm(force, axis=-1, keepdims=True), 1e-9)
        places += force / size * np.minimum(size, 0.1 * (1 - step / ROUNDS))
        places -= 0.01 * places  # parts without a connection stay near
    return places
