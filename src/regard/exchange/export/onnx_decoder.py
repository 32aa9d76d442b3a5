"""Transformer decoders as ONNX nodes.

The encoder graph computes the memory, which is what all decoder steps need of the source. The step
graph computes one decoder step.

Shapes: B sentences, k beams per sentence, S source length, t tokens so far, D width, H heads,
K head width. Vectors of a step are (k*B, D).
"""

from typing import Any, Protocol

import numpy as np
from torch import nn

from regard.exchange.export.onnx_encoder import OnnxVectors
from regard.exchange.export.onnx_graph import Graph, Size, Value
from regard.exchange.export.onnx_layers import (
    attend,
    enter,
    feed,
    leave,
    linear,
    norm,
    positions,
    queries,
    unsupported,
)
from regard.exchange.export.onnx_recurrent import RecurrentNodes
from regard.models.recurrent import RecurrentDecoder
from regard.models.transformer import TransformerDecoder
from regard.nn.attention import CrossAttention, SelfAttention
from regard.nn.layers import TransformerLayer

BIAS: tuple[Size, ...] = ("B", 1, 1, "S")


class Nodes(Protocol):
    """A writer of decoder nodes."""

    def memory(self, source: OnnxVectors) -> None:
        """Add the outputs `memory/…` and `past/…` for the first step to the encoder graph."""

    def step(self, graph: Graph, x: Value) -> Value:
        """Add one decoder step for embeddings x (k*B, D); return its output (k*B, D).

        The graph gets inputs `memory/…` and `past/…`, and outputs `next/…`.
        """


def nodes_of(decoder: nn.Module) -> Nodes:
    """Return the writer for this decoder."""
    if type(decoder) is TransformerDecoder:
        return TransformerNodes(decoder)
    if type(decoder) is RecurrentDecoder:
        return RecurrentNodes(decoder)
    raise unsupported(decoder)


class TransformerNodes:
    """A writer of the nodes of a Transformer decoder.

    The keys and values of the source are computed once. Each step appends the key and the value of
    one target token.
    """

    def __init__(self, decoder: TransformerDecoder) -> None:
        self.decoder = decoder
        self.layers: list[Any] = list(decoder.layers)
        for layer in self.layers:
            if type(layer) is not TransformerLayer:
                raise unsupported(layer)

    def memory(self, source: OnnxVectors) -> None:
        """Add the source keys and values of each layer, and a bias that masks padding."""
        graph = source.graph
        graph.output("memory/bias", graph("Unsqueeze", source.bias(), graph.numbers(1, 2)), *BIAS)
        for i, layer in enumerate(self.layers):
            H, K = _heads(layer.cross)
            both = linear(graph, layer.cross.project, source.data)
            k, v = graph.several("Split", 2, both, axis=1, num_outputs=2)
            k = graph("Transpose", source.spread(k, H, K), perm=[0, 2, 3, 1])
            v = graph("Transpose", source.spread(v, H, K), perm=[0, 2, 1, 3])
            graph.output(f"memory/{i}/k", k, "B", H, K, "S")
            graph.output(f"memory/{i}/v", v, "B", H, "S", K)

    def step(self, graph: Graph, x: Value) -> Value:
        """Add one step of all layers. The graph input `at` is the position of the token."""
        at = graph.input("at", np.int64, 1)
        width = self.layers[0].attention.join.in_features
        position = positions(graph, self.decoder.positions, at, width)
        x = x if position is None else graph("Add", x, position)
        bias = graph.input("memory/bias", np.float32, *BIAS)
        weights = ""
        for i, layer in enumerate(self.layers):
            attended = _self_attention(graph, layer.attention, enter(graph, layer.attend, x), i)
            x = leave(graph, layer.attend, x, attended)
            query = enter(graph, layer.look, x)
            found, weights = _cross_attention(graph, layer.cross, query, i, bias)
            x = leave(graph, layer.look, x, found)
            x = feed(graph, layer.feedforward, layer.feed, x)
        graph.output("attention", weights, "B", self.layers[-1].cross.heads, "k", "S")
        return norm(graph, self.decoder.norm, x)


def _heads(attention: SelfAttention | CrossAttention) -> tuple[int, int]:
    """Return the number of heads H and the head width K."""
    return attention.heads, attention.join.in_features // attention.heads


def _self_attention(graph: Graph, attention: SelfAttention, x: Value, i: int) -> Value:
    """Add the self-attention of the newest token in layer i; return its output (k*B, D)."""
    H, K = _heads(attention)
    parts = queries(graph, attention, attention.project, x)
    split = graph.several("Split", 3, parts, axis=1, num_outputs=3)
    q, *new = (graph.reshape(part, -1, H, 1, K) for part in split)
    k, v = (
        graph("Concat", graph.input(f"past/{i}/{name}", np.float32, "kB", H, "t", K), part, axis=2)
        for name, part in zip("kv", new, strict=True)
    )
    graph.output(f"next/{i}/k", k, "kB", H, "t + 1", K)
    graph.output(f"next/{i}/v", v, "kB", H, "t + 1", K)
    out, _ = attend(graph, q, graph("Transpose", k, perm=[0, 1, 3, 2]), v, None)
    return linear(graph, attention.join, graph.reshape(out, -1, H * K))


def _cross_attention(
    graph: Graph, attention: CrossAttention, x: Value, i: int, bias: Value
) -> tuple[Value, Value]:
    """Add the cross-attention of layer i; return its output (k*B, D) and weights (B, H, k, S)."""
    H, K = _heads(attention)
    k = graph.input(f"memory/{i}/k", np.float32, "B", H, K, "S")
    v = graph.input(f"memory/{i}/v", np.float32, "B", H, "S", K)
    q = graph.folded(queries(graph, attention, attention.query, x), bias, H, K)
    out, weights = attend(graph, graph("Transpose", q, perm=[0, 2, 1, 3]), k, v, bias)
    out = graph.reshape(graph("Transpose", out, perm=[0, 2, 1, 3]), -1, H * K)
    return linear(graph, attention.join, out), weights
