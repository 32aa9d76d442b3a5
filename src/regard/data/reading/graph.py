"""Graphs as sources of examples: nodes with features, and the edges between them.

N nodes, E edges, F numbers per node.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from regard.core.formatting import count_noun


@dataclass(frozen=True, eq=False)
class Bags:
    """Sparse features: the indices of each node, concatenated. lengths: (N,)."""

    flat: np.ndarray
    lengths: np.ndarray

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def starts(self) -> np.ndarray:
        """The index of the first index of each node (N,)."""
        return np.cumsum(self.lengths) - self.lengths

    def take(self, nodes: np.ndarray) -> Bags:
        """Return the indices of these nodes."""
        lengths = self.lengths[nodes]
        shift = np.repeat(self.starts[nodes] - (np.cumsum(lengths) - lengths), lengths)
        return Bags(self.flat[shift + np.arange(lengths.sum())], lengths)


Texts = tuple[str, ...]
Features = Bags | np.ndarray | Texts  # bags of indices, numbers (N, F), or texts


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph. Its positions are the nodes, which have no order.

    nodes: names of the nodes. ends: (2, E), the two nodes of each edge, each edge once. kind: (E,),
    index of the relation of each edge. relations: names of the relations; empty: edges of one kind.
    """

    name: str
    nodes: tuple[str, ...]
    features: Features
    ends: np.ndarray
    kind: np.ndarray
    relations: tuple[str, ...] = ()
    _found: dict[str, int] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"Graph({self.digest})"

    def __str__(self) -> str:
        nodes, edges = count_noun(len(self), "node"), count_noun(len(self.kind), "edge")
        return f"{self.name} ({nodes}, {edges})".strip()

    @cached_property
    def digest(self) -> str:
        """A hash of all nodes, features and edges."""
        digest = hashlib.sha256(repr((self.nodes, self.relations)).encode("utf-8", "replace"))
        if isinstance(self.features, tuple):
            digest.update(repr(self.features).encode("utf-8", "replace"))
        for part in (self.ends, self.kind, *arrays_of(self.features)):
            digest.update(repr((part.shape, part.dtype.kind)).encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()[:32]

    def index(self, node: str) -> int | None:
        """Return the position of the node with this name, or None."""
        if not self._found:
            self._found.update(zip(self.nodes, range(len(self)), strict=True))
        return self._found.get(node)

    @cached_property
    def degrees(self) -> np.ndarray:
        """The number of edges of each node (N,)."""
        return np.bincount(self.ends.ravel(), minlength=len(self))

    def take(self, nodes: np.ndarray) -> Graph:
        """Return the subgraph of these nodes, in this order, with the edges between them."""
        now = np.full(len(self), -1)
        now[nodes] = np.arange(len(nodes))
        ends = now[self.ends]
        kept = (ends >= 0).all(0)
        names = tuple(self.nodes[i] for i in nodes)
        features = take_features(self.features, nodes)
        return Graph(self.name, names, features, ends[:, kept], self.kind[kept], self.relations)

    def around(self, nodes: Sequence[int], hops: int) -> np.ndarray:
        """Return the nodes within this many edges of some nodes: those first, then by distance."""
        order = [np.asarray(nodes, np.int64)]
        seen = np.zeros(len(self), bool)
        seen[order[0]] = True
        for _ in range(hops):
            a, b = self.ends
            found = np.unique(np.concatenate([b[seen[a] & ~seen[b]], a[seen[b] & ~seen[a]]]))
            seen[found] = True
            order.append(found)
        return np.concatenate(order)


@dataclass(frozen=True)
class NodeSet:
    """Some nodes of a graph as a source: predictions are for these nodes only."""

    graph: Graph
    at: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.at)

    def __str__(self) -> str:
        return " ".join(self.graph.nodes[i] for i in self.at)


def arrays_of(features: Features) -> Iterator[np.ndarray]:
    """Yield the arrays of features; none for texts."""
    if isinstance(features, Bags):
        yield from (features.flat, features.lengths)
    elif isinstance(features, np.ndarray):
        yield features


def take_features(features: Features, nodes: np.ndarray) -> Features:
    """Return the features of these nodes."""
    if isinstance(features, Bags):
        return features.take(nodes)
    if isinstance(features, np.ndarray):
        return features[nodes]
    return tuple(features[i] for i in nodes)
