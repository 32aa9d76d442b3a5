"""Layers as ONNX nodes. Vectors lie flat, (N, D), so that a linear map is one Gemm.

N vectors, B rows, S length, D width, H heads, K head width.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.exchange.export.onnx_graph import Graph, Value
from regard.inputs.frontend import Embedding
from regard.models.heads import Head
from regard.nn.attention import CrossAttention, SelfAttention
from regard.nn.fast import claim
from regard.nn.feedforward import FeedForward
from regard.nn.norms import Norm
from regard.nn.positions import LearnedPosition, Position, SinusoidalPosition
from regard.nn.recurrent import Recurrence
from regard.nn.residual import Residual

HIDDEN = -1e30  # added to the score of a place that is not there: no weight is left of it
OPERATORS = {nn.LSTM: "LSTM", nn.GRU: "GRU", nn.RNN: "RNN"}
# ONNX has the gates in another order: of the LSTM input, output, forget, cell, where torch has
# input, forget, cell, output; of the GRU update, reset, where torch has reset, update.
GATES = {nn.LSTM: (0, 3, 1, 2), nn.GRU: (1, 0, 2), nn.RNN: (0,)}


def refuse(part: object) -> UserError:
    """Why this part of a model cannot be exported."""
    name = getattr(part, "__name__", type(part).__name__)
    return UserError(f"{name}: cannot be exported to ONNX; predict with the model as it is")


def linear(graph: Graph, layer: nn.Linear | Head, x: Value) -> Value:
    """(N, inputs) to (N, outputs)."""
    bias = [] if layer.bias is None else [graph.weight(layer.bias)]
    return graph("Gemm", x, graph.weight(layer.weight), *bias, transB=1)


def embed(graph: Graph, embedding: Embedding, tokens: Value) -> Value:
    """Tokens of any shape to vectors (N, D)."""
    x = graph("Gather", graph.weight(embedding.weight), graph.reshape(tokens, -1))
    return x if embedding.scale == 1 else graph("Mul", x, graph.scalar(embedding.scale))


def norm(graph: Graph, layer: Norm, x: Value) -> Value:
    """A layer norm, a root-mean-square norm, or none."""
    known = claim(layer, "fused")
    if known is None:
        raise refuse(layer)
    if known.weight is None:
        return x
    if known.bias is not None:
        weights = graph.weight(known.weight), graph.weight(known.bias)
        return graph("LayerNormalization", x, *weights, epsilon=known.eps)
    square = graph("ReduceMean", graph("Pow", x, graph.scalar(2.0)), graph.numbers(-1))
    root = graph("Sqrt", graph("Add", square, graph.scalar(known.eps)))
    return graph("Mul", graph("Div", x, root), graph.weight(known.weight))


def enter(graph: Graph, residual: Residual, x: Value) -> Value:
    """What a residual branch sees."""
    return norm(graph, residual.norm, x) if _norm_first(residual) else x


def leave(graph: Graph, residual: Residual, x: Value, branch: Value) -> Value:
    """The sum of the stream and a residual branch."""
    x = graph("Add", x, branch)
    return x if _norm_first(residual) else norm(graph, residual.norm, x)


def _norm_first(residual: Residual) -> bool:
    """Whether the norm is before the branch; refused where it is more than a norm and a sum."""
    known = claim(residual, "fused")
    if known is None:
        raise refuse(residual)
    return known[0]


def activate(graph: Graph, function: object, x: Value) -> Value:
    """The function of a feed-forward network."""
    if function is F.silu:
        return graph("Mul", x, graph("Sigmoid", x))
    names = {F.relu: "Relu", F.gelu: "Gelu"}
    if function not in names:
        raise refuse(function)
    return graph(names[function], x)


def feed(graph: Graph, feedforward: FeedForward, residual: Residual, x: Value) -> Value:
    """A feed-forward network in its residual branch."""
    inner = linear(graph, feedforward.widen, enter(graph, residual, x))
    narrow = linear(graph, feedforward.narrow, activate(graph, feedforward.activation, inner))
    return leave(graph, residual, x, narrow)


def positions(graph: Graph, kind: Position, places: Value, width: int) -> Value | None:
    """Vectors (T, D) to add at the places (T,); None where there are none."""
    if kind.length is not None:
        graph.facts["places"] = kind.length
    if type(kind) is Position:
        return None
    if isinstance(kind, LearnedPosition):
        return graph("Gather", graph.weight(kind.weight), places)
    if not isinstance(kind, SinusoidalPosition):
        raise refuse(kind)
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    column = graph("Unsqueeze", graph.cast(places, np.float32), graph.numbers(1))
    angles = graph("Mul", column, graph.changed(rates))  # (T, ceil(D / 2))
    both = [graph("Unsqueeze", graph(f, angles), graph.numbers(2)) for f in ("Sin", "Cos")]
    table = graph("Concat", *both, axis=2)  # (T, ceil(D / 2), 2)
    if kind.layout == "halves":
        table = graph("Transpose", table, perm=[0, 2, 1])
    table = graph.reshape(table, 0, -1)
    if width % 2 == 0:
        return table
    return graph("Slice", table, graph.numbers(0), graph.numbers(width), graph.numbers(1))


def queries(
    graph: Graph, attention: SelfAttention | CrossAttention, layer: nn.Linear, x: Value
) -> Value:
    """Queries and what else the layer makes of x, (N, any); queries divided by sqrt(K)."""
    if not claim(attention.kernel, "fuses"):
        raise refuse(attention.kernel)
    width = attention.join.in_features
    factor = torch.ones(layer.out_features, device=layer.weight.device)
    factor[:width] = (width // attention.heads) ** -0.5
    weight, bias = layer.weight * factor[:, None], layer.bias * factor
    return graph("Gemm", x, graph.changed(weight), graph.changed(bias), transB=1)


def attend(graph: Graph, q: Value, k: Value, v: Value, bias: Value | None) -> tuple[Value, Value]:
    """q (B, H, T, K), k (B, H, K, S), v (B, H, S, K) to (B, H, T, K); the weights (B, H, T, S)."""
    scores = graph("MatMul", q, k)
    if bias is not None:
        scores = graph("Add", scores, bias)
    weights = graph("Softmax", scores, axis=-1)
    return graph("MatMul", weights, v), weights


def recur(
    graph: Graph, layers: list[nn.RNNBase], x: Value, lengths: Value, start: tuple[Value, ...]
) -> list[Value]:
    """x (S, B, inputs) to all states (S, 1 or 2, B, D) and the last of each part (.., B, D).

    layers: one, or one from each end; lengths: of the rows, or "" where all are whole; start: the
    state before the first token, or nothing.
    """
    kind, width = type(layers[0]), layers[0].hidden_size
    if kind not in GATES:
        raise refuse(layers[0])

    def ordered(name: str) -> Tensor:
        blocks = [getattr(layer, f"{name}_l0").chunk(len(GATES[kind])) for layer in layers]
        return torch.stack([torch.cat([part[g] for g in GATES[kind]]) for part in blocks])

    biases = torch.cat([ordered("bias_ih"), ordered("bias_hh")], 1)
    weights = [graph.changed(w) for w in (ordered("weight_ih"), ordered("weight_hh"), biases)]
    options = {"linear_before_reset": 1} if kind is nn.GRU else {}
    direction = "bidirectional" if len(layers) == 2 else "forward"
    return graph.several(
        OPERATORS[kind],
        3 if kind is nn.LSTM else 2,
        *(x, *weights, lengths, *start),
        hidden_size=width,
        direction=direction,
        **options,
    )


def recurrence(
    graph: Graph,
    body: Recurrence,
    x: Value,
    lengths: Value = "",
    start: Sequence[tuple[Value, ...]] | None = None,
) -> tuple[Value, list[list[Value]]]:
    """A stack of layers over x (S, B, inputs): all states (S, B, D), the last of each layer."""
    last = []
    for i, layer in enumerate(body.layers):
        assert isinstance(layer, nn.RNNBase)
        out, *ends = recur(graph, [layer], x, lengths, start[i] if start else ())
        out = graph("Squeeze", out, graph.numbers(1))
        last.append(ends)
        x = graph("Add", out, x) if i > 0 else out
    return x, last
