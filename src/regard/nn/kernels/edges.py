"""Attention along the edges of a graph: the attention matrix has the pattern of the adjacency.

Shapes: B graphs, S nodes, N = B * S, E edges, H heads, K head width.
"""

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from regard.data.tensors.padded import Edges
from regard.data.tensors.tree import Tree
from regard.nn.kernels.dense import DenseAttention
from regard.nn.kernels.kernel import AttentionMask, Kernel, KernelOptions, Shape, Supports
from regard.nn.neighbors import Neighbors, edge_products, neighbor_softmax, weighted_sum


class EdgeAttention(DenseAttention):
    """softmax(q k^T / sqrt(K)) v over the neighbors of each node, in time and memory of the edges.

    Without edges, every node attends to every other: the complete graph (Vaswani et al. 2017).
    relation: a learned number per kind of edge and head, added to scores.
    """

    grouped: ClassVar[bool] = False
    local: ClassVar[bool] = True
    sparse: ClassVar[bool] = True

    def __init__(self, heads: int, relations: int) -> None:
        super().__init__(causal=False)
        self.relation = nn.Parameter(torch.zeros(relations, heads)) if relations else None

    def pattern(self, at_q: Tensor, at_k: Tensor, mask: AttentionMask) -> Tensor:
        """Return that all nodes attend to each other, as they do without edges."""
        return torch.ones(1, len(at_q), at_k.shape[-1], dtype=torch.bool, device=at_q.device)

    def structure(self, edges: Edges | None, real: Tensor) -> Neighbors | None:
        return None if edges is None else Neighbors.of(edges, real.shape[1], len(real))

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tree]:
        if mask.structure is None:
            return super().forward(q, k, v, mask, past)
        weights = self.edge_weights(q, k, mask.structure)
        out = weighted_sum(weights, by_node(v), mask.structure)
        return out.unflatten(0, (len(q), -1)).transpose(1, 2), None

    def edge_weights(self, q: Tensor, k: Tensor, graph: Neighbors) -> Tensor:
        """Return the weights (E, H) of all edges for q and k (B, H, S, K)."""
        scores = edge_products(by_node(q), by_node(k), graph) / q.shape[-1] ** 0.5
        if self.relation is not None:
            scores = scores + self.relation.index_select(0, graph.kind)
        return neighbor_softmax(scores, graph)

    def weights(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tensor]:
        if mask.structure is None:
            return super().weights(q, k, v, mask, past)
        found = self.edge_weights(q, k, mask.structure)
        return mask.structure.dense(found, len(q)), v


class EdgeAttentionOptions(KernelOptions):
    """Softmax over the neighbors in a graph. Linear in the edges."""

    supports: ClassVar[Supports] = Supports(
        causal=False, cross=False, bias=False, input_bias=False, rotary=False, edges=True
    )
    kind: Literal["edges"] = "edges"

    def build(self, shape: Shape) -> Kernel:
        return EdgeAttention(shape.heads, shape.relations)


def by_node(x: Tensor) -> Tensor:
    """Return x (B, H, S, K) as (N, H, K)."""
    return x.transpose(1, 2).flatten(0, 1)
