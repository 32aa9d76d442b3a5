"""Graphs as rows of nodes with their edges.

N nodes, E edges, F numbers per node, L indices per node, S nodes of the largest graph of a batch.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from regard.data.corpus.ragged import Rows
from regard.data.reading.graph import Graph
from regard.data.tensors.padded import Edges, Padded


@dataclass(frozen=True)
class GraphArrays:
    """An encoded graph, in the order that `nn/neighbors.py` needs.

    data: (N, F) float32, or (N, L) int64, indices from 1 followed by zeros. ends: (2, E), start and
    end of each edge, sorted by end. kind: (E,). order: (E,), the edges sorted by start.
    """

    data: np.ndarray
    ends: np.ndarray
    kind: np.ndarray
    order: np.ndarray

    def edges(self) -> Edges:
        """Return the edges as a batch of one row."""
        row = np.zeros((1, len(self.kind)), np.int64)
        ends = torch.from_numpy(np.concatenate([row, self.ends]))
        return Edges(ends, torch.from_numpy(self.kind), torch.from_numpy(self.order))


@dataclass(frozen=True)
class GraphRows(Rows):
    """Graphs, one per row."""

    graphs: Sequence[GraphArrays]

    @property
    def lengths(self) -> np.ndarray:  # type: ignore[override]
        return np.array([len(graph.data) for graph in self.graphs], np.int64)

    @property
    def num_edges(self) -> int:
        """The number of edges of all graphs, each in both directions."""
        return sum(len(graph.kind) - len(graph.data) for graph in self.graphs)

    def pad(self, rows: np.ndarray) -> Padded:
        """Return the features (B, S, F) or (B, S, L) of graphs, and their edges."""
        graphs = [self.graphs[row] for row in rows]
        edges = Edges.join([graph.edges() for graph in graphs])
        if len(graphs) == 1:  # without a copy: the graph may be large
            data = torch.from_numpy(graphs[0].data)[None]
            return Padded(data, torch.ones(data.shape[:2], dtype=torch.bool), edges=edges)
        nodes, width = (max(graph.data.shape[axis] for graph in graphs) for axis in (0, 1))
        data = torch.zeros(len(graphs), nodes, width, dtype=torch.from_numpy(graphs[0].data).dtype)
        mask = torch.zeros(len(graphs), nodes, dtype=torch.bool)
        for row, graph in enumerate(graphs):
            count, size = graph.data.shape
            data[row, :count, :size] = torch.from_numpy(graph.data)
            mask[row, :count] = True
        return Padded(data, mask, edges=edges)

    def row(self, index: int) -> np.ndarray:
        return self.graphs[index].data

    def take(self, rows: np.ndarray) -> "GraphRows":
        return GraphRows([self.graphs[row] for row in rows])

    def update(self, digest: "hashlib._Hash") -> None:
        for graph in self.graphs:
            for part in (graph.data, graph.ends, graph.kind):
                digest.update(repr(part.shape).encode())
                digest.update(np.ascontiguousarray(part).data)


def connect(graph: Graph, directed: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the ends (2, E), kinds and order of the edges that messages pass along.

    Kind 0 connects each node with itself, as GCN and GAT need. Relation r has kind r + 1 in both
    directions or, if directed, kind 2r + 1 along an edge and 2r + 2 against it.
    """
    own = np.arange(len(graph))
    a, b = graph.ends
    along, against = (2 * graph.kind + 1, 2 * graph.kind + 2) if directed else [graph.kind + 1] * 2
    start, end = np.concatenate([own, a, b]), np.concatenate([own, b, a])
    kind = np.concatenate([np.zeros_like(own), along, against])
    by_end = np.lexsort((kind, start, end))
    ends, kind = np.stack([start, end])[:, by_end].astype(np.int64), kind[by_end].astype(np.int64)
    return ends, kind, np.argsort(ends[0], kind="stable")
