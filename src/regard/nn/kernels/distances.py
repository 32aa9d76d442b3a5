"""Attention between all nodes of a graph, with a bias by their shortest path.

Shapes: B graphs, S nodes, N = B * S, H heads, K head width.
"""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.data.tensors.padded import Edges
from regard.data.tensors.tree import Tree
from regard.nn.kernels.dense import DenseAttention
from regard.nn.kernels.kernel import AttentionMask, Kernel, KernelOptions, Shape, Supports
from regard.nn.neighbors import Neighbors

MAX_NODES = 10_000  # of a graph: more have too many pairs


class DistanceAttention(DenseAttention):
    """Softmax attention with a learned bias per head and length of the shortest path.

    That is the spatial encoding of Graphormer (Ying et al. 2021, eq. 6). Longer paths than
    `longest`, and nodes without a path, have a bias of their own. Without edges, there is none.
    kinds: a learned bias per head and kind of edge between neighbors, if edges have kinds.
    """

    def __init__(self, heads: int, longest: int, relations: int) -> None:
        super().__init__(causal=False)
        self.longest = longest
        self.table = nn.Parameter(torch.zeros(longest + 2, heads))
        self.kinds = nn.Parameter(torch.zeros(relations, heads)) if relations else None

    def structure(self, edges: Edges | None, real: Tensor) -> tuple[Tensor, Neighbors] | None:
        """Return the distances (B, S, S), at most `longest` + 1, and the edges."""
        if edges is None:
            return None
        if real.shape[1] > MAX_NODES:
            raise UserError(
                f"attention distances compares all pairs of nodes: expected at most {MAX_NODES:,} "
                f"nodes per graph, found {real.shape[1]:,}",
                help="use attention edges, or encoder gcn or gat",
            )
        graph = Neighbors.of(edges, real.shape[1], len(real))
        return shortest_paths(graph, len(real), self.longest), graph

    def biased(self, mask: AttentionMask) -> AttentionMask:
        """Return the mask with the bias (B, H, S, S) of the distances."""
        if mask.structure is None:
            return mask
        distances, graph = mask.structure
        bias = self.table[distances].permute(0, 3, 1, 2)
        if self.kinds is not None:
            bias = bias + graph.dense(self.kinds[graph.kind], len(bias))
        return mask._replace(bias=bias)

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tree]:
        return super().forward(q, k, v, self.biased(mask), past)

    def weights(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tensor]:
        return super().weights(q, k, v, self.biased(mask), past)


@torch.no_grad()
def shortest_paths(graph: Neighbors, rows: int, longest: int) -> Tensor:
    """Return the number of edges between all nodes of each graph (B, S, S), at most longest + 1."""
    length = graph.nodes // rows
    device = graph.start.device
    reached = torch.eye(length, device=device).repeat(rows, 1)  # (N, S)
    found = torch.full((graph.nodes, length), longest + 1, device=device)
    found[reached > 0] = 0
    matrix = graph.matrix(torch.ones(len(graph.start), device=device))
    for steps in range(1, longest + 1):
        reached = ((matrix @ reached + reached) > 0).float()
        found[(reached > 0) & (found > steps)] = steps
    return found.view(rows, length, length)


class Distances(KernelOptions):
    """Softmax with a bias by the shortest path in a graph. Quadratic."""

    supports: ClassVar[Supports] = Supports(
        causal=False, cross=False, bias=False, input_bias=False, rotary=False, edges=True
    )
    kind: Literal["distances"] = "distances"
    longest: int = Field(5, gt=0, description="longest path with a bias of its own, in edges")

    def build(self, shape: Shape) -> Kernel:
        return DistanceAttention(shape.heads, self.longest, shape.relations)
