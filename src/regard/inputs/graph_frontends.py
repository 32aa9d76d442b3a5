"""Frontends of graphs: a vector per node, with or without the edges.

B graphs of a batch, S nodes, F features per node, L indices per node, D width.
"""

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.data.tensors.padded import Padded
from regard.inputs.frontend import Frontend, FrontendOptions
from regard.inputs.input import InputShape
from regard.nn.capture_hooks import record_input
from regard.nn.dropout import Dropout


class BagProjection(nn.Module):
    """The sum or mean of the vectors of a node's indices, with dropout of single indices."""

    def __init__(self, size: int, width: int, mean: bool, dropout: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, width))
        nn.init.xavier_uniform_(self.weight)
        self.mean = mean
        self.dropout = Dropout(dropout)

    def forward(self, indices: Tensor) -> Tensor:
        """Return the vectors (B, S, D) for indices from 1 (B, S, L), followed by zeros."""
        real = indices > 0
        counts = real.sum(-1).flatten()  # (B * S,)
        factor = 1 / counts.clamp(min=1) if self.mean else torch.ones_like(counts)
        weights = self.dropout(factor.to(self.weight.dtype).repeat_interleave(counts))
        x = F.embedding_bag(
            indices[real] - 1,
            self.weight,
            counts.cumsum(0) - counts,
            mode="sum",
            per_sample_weights=weights,
        )
        return x.view(*indices.shape[:2], -1)


class NodeFrontend(Frontend):
    """A vector per node: its features, projected. has_edges: whether edges are passed on."""

    def __init__(self, project: nn.Module, width: int, relations: int, has_edges: bool) -> None:
        super().__init__()
        self.project, self.width = project, width
        self.relations, self.has_edges = relations, has_edges

    def forward(self, source: Padded) -> Padded:
        """Return the vectors (B, S, D) of the nodes, and the edges."""
        data = record_input(self, self.project(source.data))
        return source._replace(data=data, edges=source.edges if self.has_edges else None)


class NodeFrontendOptions(FrontendOptions):
    """Options of the features of nodes without edges, for models that see each node alone."""

    has_edges: ClassVar[bool] = False
    reads: ClassVar[str] = "graph"
    carries: ClassVar[frozenset[str]] = frozenset({"nodes"})
    kind: Literal["nodes"] = "nodes"

    def build(
        self, shape: InputShape, width: int, scale: float, dropout: float, direct: bool
    ) -> NodeFrontend:
        if shape.bag:
            project: nn.Module = BagProjection(shape.size, width, shape.bag == "mean", dropout)
        else:
            linear = nn.Linear(shape.size, width, bias=False)
            nn.init.xavier_uniform_(linear.weight)
            project = nn.Sequential(Dropout(dropout), linear)
        return NodeFrontend(project, width, shape.relations, self.has_edges)


class GraphFrontendOptions(NodeFrontendOptions):
    """Options of the features of nodes, with the edges."""

    has_edges: ClassVar[bool] = True
    carries: ClassVar[frozenset[str]] = frozenset({"edges"})
    kind: Literal["graph"] = "graph"  # type: ignore[assignment]

    @classmethod
    def suits(cls, uses: frozenset[str], direct: bool) -> bool:
        return "edges" in uses
