"""Transformer decoders as ONNX nodes: what the encoder's graph leaves for them, and one step.

B rows of memory, k beams a row, S source length, t tokens so far, D width, H heads, K head
width. Vectors of a step are (k*B, D).
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
    refuse,
)
from regard.exchange.export.onnx_recurrent import RecurrentNodes
from regard.models.recurrent import RecurrentDecoder
from regard.models.transformer import TransformerDecoder
from regard.nn.attention import CrossAttention, SelfAttention
from regard.nn.layers import TransformerLayer

BIAS: tuple[Size, ...] = ("B", 1, 1, "S")


class Nodes(Protocol):
    """How a decoder is written."""

    def memory(self, source: OnnxVectors) -> None:
        """Adds what the steps need of the source, as outputs `memory/…` and `past/…`."""

    def step(self, graph: Graph, x: Value) -> Value:
        """x (k*B, D) to (k*B, D); adds inputs `memory/…` and `past/…`, outputs `next/…`."""


def nodes_of(decoder: nn.Module) -> Nodes:
    """How this decoder is written."""
    if type(decoder) is TransformerDecoder:
        return TransformerNodes(decoder)
    if type(decoder) is RecurrentDecoder:
        return RecurrentNodes(decoder)
    raise refuse(decoder)


class TransformerNodes:
    """Keys and values of the source are projected once; those of the target are joined on."""

    def __init__(self, decoder: TransformerDecoder) -> None:
        self.decoder = decoder
        self.layers: list[Any] = list(decoder.layers)
        for layer in self.layers:
            if type(layer) is not TransformerLayer:
                raise refuse(layer)

    def memory(self, source: OnnxVectors) -> None:
        """The keys and values of each layer, and a bias that hides padding."""
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
        """The last token looks back, then at the source; `at` is its place."""
        at = graph.input("at", np.int64, 1)
        width = self.layers[0].attention.join.in_features
        place = positions(graph, self.decoder.positions, at, width)
        x = x if place is None else graph("Add", x, place)
        bias = graph.input("memory/bias", np.float32, *BIAS)
        weights = ""
        for i, layer in enumerate(self.layers):
            mixed = _look_back(graph, layer.attention, enter(graph, layer.attend, x), i)
            x = leave(graph, layer.attend, x, mixed)
            seen = enter(graph, layer.look, x)
            found, weights = _look_up(graph, layer.cross, seen, i, bias)
            x = leave(graph, layer.look, x, found)
            x = feed(graph, layer.feedforward, layer.feed, x)
        graph.output("attention", weights, "B", self.layers[-1].cross.heads, "k", "S")
        return norm(graph, self.decoder.norm, x)


def _heads(attention: SelfAttention | CrossAttention) -> tuple[int, int]:
    """H and K."""
    return attention.heads, attention.join.in_features // attention.heads


def _look_back(graph: Graph, attention: SelfAttention, x: Value, i: int) -> Value:
    """What the last token finds in itself and those before it."""
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


def _look_up(
    graph: Graph, attention: CrossAttention, x: Value, i: int, bias: Value
) -> tuple[Value, Value]:
    """What the last token finds in the source, and its attention (B, H, k, S).

    The beams of a sentence go together.
    """
    H, K = _heads(attention)
    k = graph.input(f"memory/{i}/k", np.float32, "B", H, K, "S")
    v = graph.input(f"memory/{i}/v", np.float32, "B", H, "S", K)
    q = graph.folded(queries(graph, attention, attention.query, x), bias, H, K)
    out, weights = attend(graph, graph("Transpose", q, perm=[0, 2, 1, 3]), k, v, bias)
    out = graph.reshape(graph("Transpose", out, perm=[0, 2, 1, 3]), -1, H * K)
    return linear(graph, attention.join, out), weights
