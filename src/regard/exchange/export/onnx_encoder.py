"""Encoders as ONNX nodes.

Shapes: B sentences, S length, N = B * S, D width, H heads, K head width, R window.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import nn

from regard.exchange.export.onnx_graph import Graph, Value
from regard.exchange.export.onnx_layers import (
    MASKED,
    activate,
    attend,
    embed,
    enter,
    feed,
    leave,
    linear,
    norm,
    positions,
    queries,
    recur,
    recurrence,
    unsupported,
)
from regard.models.recurrent import RecurrentEncoder
from regard.models.transformer import TransformerEncoder
from regard.models.window import LinearEncoder, MlpEncoder, WindowEncoder
from regard.nn.attention import SelfAttention
from regard.nn.fast import claim
from regard.nn.layers import TransformerLayer
from regard.nn.recurrent import Bidirectional, Recurrence

LAST = np.iinfo(np.int64).max  # the end of an axis


@dataclass(frozen=True)
class OnnxVectors:
    """The vectors of padded sentences in a graph."""

    graph: Graph
    data: Value  # (N, D)
    mask: Value  # (B, S), True unless padding
    shape: Value  # (2,): B and S
    width: int
    summary: Value | None = None  # (B, D)

    def spread(self, x: Value, *sizes: int) -> Value:
        """Reshape x (N, any) to (B, S, *sizes)."""
        shape = self.graph("Concat", self.shape, self.graph.numbers(*sizes), axis=0)
        return self.graph("Reshape", x, shape)

    def lengths(self) -> Value:
        """Return the number of real tokens (B,) per sentence, as int32."""
        ones = self.graph.cast(self.mask, np.int32)
        return self.graph("ReduceSum", ones, self.graph.numbers(1), keepdims=0)

    def bias(self) -> Value:
        """Return the bias (B, S) to add to scores: 0, or MASKED for padding."""
        return self.graph("Where", self.mask, self.graph.scalar(0.0), self.graph.scalar(MASKED))

    def pooled(self) -> Value:
        """Return the summary (B, D), or without a summary the mean over real positions."""
        if self.summary is not None:
            return self.summary
        graph = self.graph
        weight = graph.cast(self.mask, np.float32)
        data = self.spread(self.data, self.width)
        real = graph("Mul", data, graph("Unsqueeze", weight, graph.numbers(2)))
        total = graph("ReduceSum", real, graph.numbers(1), keepdims=0)
        count = graph("ReduceSum", weight, graph.numbers(1))
        return graph("Div", total, graph("Max", count, graph.scalar(1.0)))


def encode(graph: Graph, frontend: nn.Module, encoder: nn.Module) -> OnnxVectors:
    """Add an encoder with the graph inputs `tokens` and `mask` (B, S); return its output."""
    tokens = graph.input("tokens", np.int64, "B", "S")
    mask = graph.input("mask", np.bool_, "B", "S")
    table = claim(frontend, "lookup")
    if table is None:
        raise unsupported(frontend)
    x = embed(graph, table, tokens)
    width = table.weight.shape[1]
    source = OnnxVectors(graph, x, mask, graph("Shape", tokens), width)
    if type(encoder) not in ENCODERS:
        raise unsupported(encoder)
    return ENCODERS[type(encoder)](encoder, source)


def _transformer(encoder: TransformerEncoder, source: OnnxVectors) -> OnnxVectors:
    graph, x = source.graph, source.data
    length = graph("Gather", source.shape, graph.integer(1))
    indices = graph("Range", graph.integer(0), length, graph.integer(1))
    table = positions(graph, encoder.positions, indices, source.width)
    if table is not None:
        x = graph("Add", source.spread(x, source.width), table)
        x = graph.reshape(x, -1, source.width)
    bias = graph("Unsqueeze", source.bias(), graph.numbers(1, 2))  # (B, 1, 1, S)
    for layer in encoder.layers:
        assert isinstance(layer, TransformerLayer)
        attended = _self_attention(layer.attention, source, enter(graph, layer.attend, x), bias)
        x = leave(graph, layer.attend, x, attended)
        x = feed(graph, layer.feedforward, layer.feed, x)
    return replace(source, data=norm(graph, encoder.norm, x))


def _self_attention(attention: SelfAttention, source: OnnxVectors, x: Value, bias: Value) -> Value:
    """Add the self-attention of vectors x (N, D) to all real positions; return (N, D)."""
    graph, width = source.graph, attention.join.in_features
    each = attention.heads, width // attention.heads
    both = queries(graph, attention, attention.project, x)
    parts = graph.several("Split", 3, both, axis=1, num_outputs=3)
    q, k, v = (source.spread(part, *each) for part in parts)  # (B, S, H, K) each
    q, v = (graph("Transpose", part, perm=[0, 2, 1, 3]) for part in (q, v))
    k = graph("Transpose", k, perm=[0, 2, 3, 1])
    out = graph("Transpose", attend(graph, q, k, v, bias)[0], perm=[0, 2, 1, 3])
    return linear(graph, attention.join, graph.reshape(out, -1, width))


def _recurrent(encoder: RecurrentEncoder, source: OnnxVectors) -> OnnxVectors:
    graph, body, lengths = source.graph, encoder.body, source.lengths()
    x = graph("Transpose", source.spread(source.data, source.width), perm=[1, 0, 2])  # (S, B, D)
    both = isinstance(body, Bidirectional)
    if isinstance(body, Bidirectional):
        width = 2 * _first(body.forwards[0]).hidden_size
        for i, sides in enumerate(zip(body.forwards, body.backwards, strict=True)):
            layers = [_first(side) for side in sides]
            out = recur(graph, layers, x, lengths, ())[0]
            out = graph("Transpose", out, perm=[0, 2, 1, 3])  # (S, B, 2, D / 2)
            out = graph.reshape(out, 0, 0, width)
            x = graph("Add", out, x) if i > 0 else out
    else:
        width = _first(body).hidden_size
        x = recurrence(graph, body, x, lengths)[0]
    x = graph("Transpose", x, perm=[1, 0, 2])  # (B, S, D)
    summary = _final_states(graph, x, lengths, width if both else 0)
    return replace(source, data=graph.reshape(x, -1, width), width=width, summary=summary)


def _final_states(graph: Graph, x: Value, lengths: Value, both: int) -> Value:
    """Return the final state (B, D) of x (B, S, D). both: D if bidirectional, otherwise 0."""
    last = graph("Sub", graph.cast(lengths, np.int64), graph.numbers(1))
    last = graph("Max", graph("Unsqueeze", last, graph.numbers(1)), graph.numbers(0))  # (B, 1)
    final = graph("GatherND", x, last, batch_dims=1)
    if not both:
        return final
    first = graph("Gather", x, graph.integer(0), axis=1)
    half, axis = graph.numbers(both // 2), graph.numbers(1)
    left = graph("Slice", final, graph.numbers(0), half, axis)
    right = graph("Slice", first, half, graph.numbers(LAST), axis)
    return graph("Concat", left, right, axis=1)


def _first(body: nn.Module) -> nn.RNNBase:
    """Return the first layer of a stack of recurrent layers."""
    assert isinstance(body, Recurrence)
    layer = body.layers[0]
    assert isinstance(layer, nn.RNNBase)
    return layer


def _linear(encoder: LinearEncoder, source: OnnxVectors) -> OnnxVectors:
    return source


def _mlp(encoder: MlpEncoder, source: OnnxVectors) -> OnnxVectors:
    x, width = source.data, source.width
    for layer in encoder.layers:
        assert isinstance(layer, nn.Linear)
        x = activate(source.graph, encoder.activation, linear(source.graph, layer, x))
        width = layer.out_features
    return replace(source, data=x, width=width)


def _window(encoder: WindowEncoder, source: OnnxVectors) -> OnnxVectors:
    graph, window, axis = source.graph, encoder.window, source.graph.numbers(1)
    real = graph.cast(source.mask, np.float32)
    x = source.spread(source.data, source.width)
    x = graph("Mul", x, graph("Unsqueeze", real, graph.numbers(2)))
    x = graph("Pad", x, graph.numbers(0, window, 0, 0, window, 0))  # (B, S + 2 R, D)
    ends = [start - 2 * window or LAST for start in range(2 * window + 1)]
    slices = [
        graph("Slice", x, graph.numbers(start), graph.numbers(end), axis)
        for start, end in enumerate(ends)
    ]
    width = len(ends) * source.width
    joined = graph.reshape(graph("Concat", *slices, axis=2), -1, width)
    return _mlp(encoder.mlp, replace(source, data=joined, width=width))


ENCODERS: dict[type[nn.Module], Callable[[Any, OnnxVectors], OnnxVectors]] = {
    TransformerEncoder: _transformer,
    RecurrentEncoder: _recurrent,
    LinearEncoder: _linear,
    MlpEncoder: _mlp,
    WindowEncoder: _window,
}
