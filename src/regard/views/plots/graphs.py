"""Plots of graphs: a graph next to its attention matrix, and the complete graph.

N nodes, K head width.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from regard.data.tensors.padded import Edges
from regard.nn.kernels.edges import EdgeAttention
from regard.nn.kernels.kernel import AttentionMask
from regard.nn.positions import Position
from regard.views.figures.fonts import fonts_for
from regard.views.figures.graph_plot import draw, layout
from regard.views.figures.style import COLORS, GRID, PAPER, hide_frame, new_figure, panels
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE, GROUPS, INSIDE, OUTSIDE, WIDTH, SEED = 10, 2, 0.55, 0.06, 4, 5


def plot_graph_attention(args: PlotArgs) -> "Figure":
    """Plot attention on a graph and on the complete graph, each next to its matrix."""
    edges = block_graph()
    complete = [[a, b] for a in range(SIZE) for b in range(a + 1, SIZE)]
    title = "Attention on a graph; self-attention is that on the complete graph"
    figure = new_figure(9.0, 7.0, title)
    cells = panels(figure, 2, 2)
    torch.manual_seed(SEED)
    q, k, v = (torch.randn(1, 1, SIZE, WIDTH) for _ in range(3))
    for row, (some, name) in enumerate(((edges, "a graph"), (complete, "the complete graph"))):
        weights = attention(q, k, v, some)
        draw_pair(cells[2 * row], cells[2 * row + 1], some, weights, name)
    return figure


def block_graph() -> list[list[int]]:
    """Return the edges of a small graph of two groups (a stochastic block model)."""
    rng = np.random.default_rng(SEED)
    group = np.arange(SIZE) * GROUPS // SIZE
    return [
        [a, b]
        for a in range(SIZE)
        for b in range(a + 1, SIZE)
        if rng.random() < (INSIDE if group[a] == group[b] else OUTSIDE)
    ]


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, edges: list[list[int]]
) -> np.ndarray:
    """Return the attention weights (N, N) of a kernel that attends along these edges."""
    pairs = [(i, i) for i in range(SIZE)] + [(a, b) for a, b in edges] + [(b, a) for a, b in edges]
    ends = torch.tensor([(0, start, end) for start, end in sorted(pairs, key=lambda p: p[::-1])]).T
    kernel = EdgeAttention(1, 0)
    real = torch.ones(1, SIZE, dtype=torch.bool)
    structure = kernel.structure(Edges(ends, torch.zeros(ends.shape[1], dtype=torch.long)), real)
    mask = AttentionMask(Position(), 1, real, structure=structure)
    weights: np.ndarray = kernel.weights(q, k, v, mask, None)[0][0, 0].detach().numpy()
    return weights


def draw_pair(
    left: Any, right: Any, edges: list[list[int]], weights: np.ndarray, name: str
) -> None:
    """Draw a graph, and its attention matrix with empty cells where there is no edge."""
    from matplotlib.colors import LinearSegmentedColormap

    ends = np.array(edges)
    along = np.maximum(weights[ends[:, 0], ends[:, 1]], weights[ends[:, 1], ends[:, 0]])
    names = [str(i) for i in range(SIZE)]
    labels = [f"group {i * GROUPS // SIZE + 1}" for i in range(SIZE)]
    graph = {"nodes": names, "edges": edges, "labels": labels, "explained": 0}
    draw(left, graph, layout(SIZE, edges), along, np.full(SIZE, 0.5), fonts_for(iter(names)))
    left.set_title(name)
    shown = np.ma.masked_equal(weights, 0)
    right.imshow(shown, cmap=LinearSegmentedColormap.from_list("blue", [GRID, COLORS[0]]))
    hide_frame(right)
    right.set_facecolor(PAPER)
    empty = int((weights == 0).sum())
    right.set_title(f"attention: {empty} of {weights.size} cells are empty")
    right.set(xticks=range(SIZE), yticks=range(SIZE), xlabel="attends to", ylabel="node")
