"""Layers as ONNX nodes. Vectors are flattened to (N, D), so that a linear layer is one Gemm.

Shapes: N vectors, B sentences, S length, D width, H heads, K head width.
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
from regard.models.output_layer import OutputLayer
from regard.nn.attention import CrossAttention, SelfAttention
from regard.nn.fast import claim
from regard.nn.feedforward import FeedForward
from regard.nn.norms import Norm
from regard.nn.positions import Position
from regard.nn.positions.learned import LearnedPosition
from regard.nn.positions.sinusoidal import SinusoidalPosition
from regard.nn.recurrent import Recurrence
from regard.nn.residual import PostNorm, PreNorm, Residual

MASKED = -1e30  # added to the scores of padding, so that its attention weight is 0
OPERATORS = {nn.LSTM: "LSTM", nn.GRU: "GRU", nn.RNN: "RNN"}
# The gates of torch in the order of ONNX. LSTM: input, output, forget, cell in ONNX; input, forget,
# cell, output in torch. GRU: update, reset, new in ONNX; reset, update, new in torch.
GATES = {nn.LSTM: (0, 3, 1, 2), nn.GRU: (1, 0, 2), nn.RNN: (0,)}


def unsupported(part: object) -> UserError:
    """Return the error for a module that cannot be exported."""
    name = getattr(part, "__name__", type(part).__name__)
    return UserError(f"{name}: cannot be exported to ONNX; use engine torch")


def linear(graph: Graph, layer: nn.Linear | OutputLayer, x: Value) -> Value:
    """Add a linear layer for x (N, inputs); return its output (N, outputs)."""
    bias = [] if layer.bias is None else [graph.weight(layer.bias)]
    return graph("Gemm", x, graph.weight(layer.weight), *bias, transB=1)


def embed(graph: Graph, embedding: Embedding, tokens: Value) -> Value:
    """Add the embedding of tokens of any shape; return the vectors (N, D)."""
    x = graph("Gather", graph.weight(embedding.weight), graph.reshape(tokens, -1))
    return x if embedding.scale == 1 else graph("Mul", x, graph.scalar(embedding.scale))


def norm(graph: Graph, layer: Norm, x: Value) -> Value:
    """Add a layer norm or an RMS norm. Return x for no norm."""
    known = claim(layer, "fused")
    if known is None:
        raise unsupported(layer)
    if known.weight is None:
        return x
    if known.bias is not None:
        weights = graph.weight(known.weight), graph.weight(known.bias)
        return graph("LayerNormalization", x, *weights, epsilon=known.eps)
    square = graph("ReduceMean", graph("Pow", x, graph.scalar(2.0)), graph.numbers(-1))
    root = graph("Sqrt", graph("Add", square, graph.scalar(known.eps)))
    return graph("Mul", graph("Div", x, root), graph.weight(known.weight))


def enter(graph: Graph, residual: Residual, x: Value) -> Value:
    """Return the input of a residual branch, normalized if pre-norm."""
    return norm(graph, residual.norm, x) if _norm_first(residual) else x


def leave(graph: Graph, residual: Residual, x: Value, branch: Value) -> Value:
    """Add the output of a residual branch to x, and normalize the sum if post-norm."""
    x = graph("Add", x, branch) if residual.connected else branch
    return x if _norm_first(residual) else norm(graph, residual.norm, x)


def _norm_first(residual: Residual) -> bool:
    """Return whether the residual is pre-norm. Raise UserError if it is not supported."""
    if type(residual) not in (PreNorm, PostNorm):
        raise unsupported(residual)
    return type(residual) is PreNorm


def activate(graph: Graph, function: object, x: Value) -> Value:
    """Add an activation function."""
    if function is F.silu:
        return graph("Mul", x, graph("Sigmoid", x))
    names = {F.relu: "Relu", F.gelu: "Gelu", torch.tanh: "Tanh", torch.sigmoid: "Sigmoid"}
    if function not in names:
        raise unsupported(function)
    return graph(names[function], x)


def feed(graph: Graph, feedforward: FeedForward, residual: Residual, x: Value) -> Value:
    """Add a feed-forward network with its residual connection."""
    entered = enter(graph, residual, x)
    widened = linear(graph, feedforward.widen, entered)
    inner = activate(graph, feedforward.activation, widened)
    if feedforward.gate is not None:
        inner = graph("Mul", inner, linear(graph, feedforward.gate, entered))
    return leave(graph, residual, x, linear(graph, feedforward.narrow, inner))


def positions(graph: Graph, kind: Position, indices: Value, width: int) -> Value | None:
    """Return the vectors (T, D) of these positions (T,); None without positions."""
    if kind.length is not None:
        graph.metadata["max_length"] = kind.length
    if type(kind) is Position:
        return None
    if isinstance(kind, LearnedPosition):
        return graph("Gather", graph.weight(kind.weight), indices)
    if not isinstance(kind, SinusoidalPosition):
        raise unsupported(kind)
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    column = graph("Unsqueeze", graph.cast(indices, np.float32), graph.numbers(1))
    angles = graph("Mul", column, graph.constant(rates))  # (T, ceil(D / 2))
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
    """Add an input projection of attention for x (N, D), with queries divided by sqrt(K)."""
    if not claim(attention.kernel, "fuses") or not attention.sizes.is_plain:
        raise unsupported(attention.kernel)
    width = attention.join.in_features
    factor = torch.ones(layer.out_features, device=layer.weight.device)
    factor[:width] = (width // attention.heads) ** -0.5
    weight, bias = layer.weight * factor[:, None], layer.bias * factor
    return graph("Gemm", x, graph.constant(weight), graph.constant(bias), transB=1)


def attend(graph: Graph, q: Value, k: Value, v: Value, bias: Value | None) -> tuple[Value, Value]:
    """Add attention; return the output (B, H, T, K) and the weights (B, H, T, S).

    q: (B, H, T, K). k: (B, H, K, S). v: (B, H, S, K). bias: added to the scores, or None.
    """
    scores = graph("MatMul", q, k)
    if bias is not None:
        scores = graph("Add", scores, bias)
    weights = graph("Softmax", scores, axis=-1)
    return graph("MatMul", weights, v), weights


def recur(
    graph: Graph, layers: list[nn.RNNBase], x: Value, lengths: Value, start: tuple[Value, ...]
) -> list[Value]:
    """Add a recurrent layer for x (S, B, inputs).

    Return all states (S, 1 or 2, B, D) and the final ones. layers: one layer, or one per
    direction. lengths: the lengths of the sentences, or "" without padding. start: the initial
    state; empty for zeros.
    """
    kind, width = type(layers[0]), layers[0].hidden_size
    if kind not in GATES:
        raise unsupported(layers[0])

    def ordered(name: str) -> Tensor:
        blocks = [getattr(layer, f"{name}_l0").chunk(len(GATES[kind])) for layer in layers]
        return torch.stack([torch.cat([part[g] for g in GATES[kind]]) for part in blocks])

    biases = torch.cat([ordered("bias_ih"), ordered("bias_hh")], 1)
    weights = [graph.constant(w) for w in (ordered("weight_ih"), ordered("weight_hh"), biases)]
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
    """Add a stack of recurrent layers; return the outputs (S, B, D) and the final states."""
    last = []
    for i, layer in enumerate(body.layers):
        assert isinstance(layer, nn.RNNBase)
        out, *ends = recur(graph, [layer], x, lengths, start[i] if start else ())
        out = graph("Squeeze", out, graph.numbers(1))
        last.append(ends)
        x = graph("Add", out, x) if i > 0 else out
    return x, last
