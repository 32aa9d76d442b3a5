"""Sums and softmax over the neighbors of each node. Cost and memory grow with the edges.

Products of a sparse matrix in rows (CSR) with vectors replace gathering a vector per edge and
adding them up, which is slower on a CPU. So edges are sorted by their end node, and no tensor has a
vector per edge.

Shapes: B graphs of a batch with S nodes each, N = B * S nodes, E edges sorted by end node, H heads,
K head width.
"""

import warnings
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.data.tensors.padded import Edges

with warnings.catch_warnings():  # torch warns once that sparse matrices are in beta
    warnings.simplefilter("ignore")
    torch.eye(1).to_sparse_csr()


class Neighbors(NamedTuple):
    """The edges of all graphs of a batch, in rows: those into node 0, then into node 1, ...

    first: (N + 1,), index of the first edge into each node. start, end: (E,), the nodes that an
    edge connects. kind: (E,). order: (E,), the edges sorted by start node instead. first_out:
    (N + 1,), index of the first edge out of each node, in this order.
    """

    first: Tensor
    start: Tensor
    end: Tensor
    kind: Tensor
    order: Tensor
    first_out: Tensor

    @classmethod
    def of(cls, edges: Edges, length: int, rows: int) -> "Neighbors":
        """Return the edges of a batch of `rows` graphs, padded to `length` nodes."""
        row, start, end = edges.ends
        nodes, start, end, kind = (
            rows * length,
            row * length + start,
            row * length + end,
            edges.kind,
        )
        order = edges.order
        if len(end) and not bool((end[1:] >= end[:-1]).all()):
            by_end = end.argsort(stable=True)
            start, end, kind, order = start[by_end], end[by_end], kind[by_end], None
        if order is None:
            order = start.argsort(stable=True)
        return cls(_first(end, nodes), start, end, kind, order, _first(start, nodes))

    @property
    def nodes(self) -> int:
        """The number of nodes, padding included."""
        return len(self.first) - 1

    def matrix(self, values: Tensor) -> Tensor:
        """Return the sparse matrix (N, N) with these values (E,): row = end, column = start."""
        return _csr(self.first, self.start, values, self.nodes)

    def transposed(self, values: Tensor) -> Tensor:
        """Return the transposed matrix (N, N): row = start, column = end."""
        return _csr(self.first_out, self.end[self.order], values[self.order], self.nodes)

    def sums(self, values: Tensor) -> Tensor:
        """Return the sum (N, H) of the values (E, H) of the edges into each node."""
        return torch.segment_reduce(values, "sum", offsets=self.first, axis=0, unsafe=True)

    def sums_out(self, values: Tensor) -> Tensor:
        """Return the sum (N, H) of the values (E, H) of the edges out of each node."""
        values = values.index_select(0, self.order)
        return torch.segment_reduce(values, "sum", offsets=self.first_out, axis=0, unsafe=True)

    def degrees(self) -> Tensor:
        """Return the number of edges into each node (N,)."""
        return self.first.diff()

    def dense(self, values: Tensor, rows: int) -> Tensor:
        """Return the values (E, H) as matrices (B, H, S, S), 0 without an edge. For recording."""
        length = self.nodes // rows
        found = values.new_zeros(rows, length, length, values.shape[1])
        at = (self.end // length, self.end % length, self.start % length)
        return found.index_put(at, values, accumulate=True).permute(0, 3, 1, 2)


def _first(nodes: Tensor, count: int) -> Tensor:
    """Return the index (N + 1,) of the first of each node in a sorted list."""
    return torch.cat([nodes.new_zeros(1), nodes.bincount(minlength=count).cumsum(0)])


def _csr(first: Tensor, columns: Tensor, values: Tensor, nodes: int) -> Tensor:
    return torch.sparse_csr_tensor(first, columns, values, (nodes, nodes), check_invariants=False)


class _WeightedSum(torch.autograd.Function):
    """out[i] = sum of weights[e] * x[start of e] over the edges e into i, per head."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, x: Tensor, graph: Neighbors) -> Tensor:
        ctx.save_for_backward(weights, x)
        ctx.graph = graph
        return _products(graph.matrix, weights, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        weights, x = ctx.saved_tensors
        for_weights = for_x = None
        if ctx.needs_input_grad[1]:
            for_x = _products(ctx.graph.transposed, weights, gradients[0])
        if ctx.needs_input_grad[0]:
            for_weights = _edge_products(gradients[0], x, ctx.graph)
        return for_weights, for_x, None


class _EdgeProducts(torch.autograd.Function):
    """out[e] = q[end of e] . k[start of e], per head."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, graph: Neighbors) -> Tensor:
        ctx.save_for_backward(q, k)
        ctx.graph = graph
        return _edge_products(q, k, graph)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (q, k), graph = ctx.saved_tensors, ctx.graph
        for_q = _products(graph.matrix, gradients[0], k)
        return for_q, _products(graph.transposed, gradients[0], q), None


class _EdgeSums(torch.autograd.Function):
    """out[e] = at_start[start of e] + at_end[end of e], per head."""

    @staticmethod
    def forward(ctx: Any, at_start: Tensor, at_end: Tensor, graph: Neighbors) -> Tensor:
        ctx.graph = graph
        return at_start.index_select(0, graph.start).add_(at_end.index_select(0, graph.end))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        gradient = gradients[0].contiguous()
        return ctx.graph.sums_out(gradient), ctx.graph.sums(gradient), None


class _Softmax(torch.autograd.Function):
    """The softmax of scores over the edges into each node, per head."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, graph: Neighbors) -> Tensor:
        largest = torch.segment_reduce(scores, "max", offsets=graph.first, axis=0, unsafe=True)
        weights = (scores - largest.index_select(0, graph.end)).exp_()
        weights.div_(graph.sums(weights).index_select(0, graph.end))
        ctx.save_for_backward(weights)
        ctx.graph = graph
        return weights

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (weights,), graph = ctx.saved_tensors, ctx.graph
        weighted = weights * gradients[0]
        means = graph.sums(weighted).index_select(0, graph.end)
        return weighted.sub_(means.mul_(weights)), None


def _products(matrix: Any, weights: Tensor, x: Tensor) -> Tensor:
    """Return matrix(weights of a head) @ x of this head: (N, H, K) for weights (E, H)."""
    heads = [
        matrix(w.contiguous()) @ v.contiguous() for w, v in zip(weights.T, x.unbind(1), strict=True)
    ]
    return torch.stack(heads, 1)


def _edge_products(q: Tensor, k: Tensor, graph: Neighbors) -> Tensor:
    """Return q[end] . k[start] of each edge (E, H) for q and k (N, H, K)."""
    pattern = graph.matrix(q.new_zeros(len(graph.start)))
    pairs = zip(q.unbind(1), k.unbind(1), strict=True)
    heads = [
        torch.sparse.sampled_addmm(pattern, a.contiguous(), b.T.contiguous(), beta=0.0).values()
        for a, b in pairs
    ]
    return torch.stack(heads, 1)


def weighted_sum(weights: Tensor, x: Tensor, graph: Neighbors) -> Tensor:
    """Return the sums (N, H, K) of the neighbors' vectors x (N, H, K), weighted (E, H)."""
    found: Tensor = _WeightedSum.apply(weights, x, graph)
    return found


def edge_products(q: Tensor, k: Tensor, graph: Neighbors) -> Tensor:
    """Return the product (E, H) of the query of the end and the key of the start of each edge."""
    found: Tensor = _EdgeProducts.apply(q, k, graph)
    return found


def edge_sums(at_start: Tensor, at_end: Tensor, graph: Neighbors) -> Tensor:
    """Return, for each edge, the value of its start plus that of its end: (E, H) for (N, H)."""
    found: Tensor = _EdgeSums.apply(at_start, at_end, graph)
    return found


def neighbor_softmax(scores: Tensor, graph: Neighbors) -> Tensor:
    """Return the softmax (E, H) of scores (E, H) over the edges into each node."""
    found: Tensor = _Softmax.apply(scores, graph)
    return found
