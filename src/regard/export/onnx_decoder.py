"""Decoders as ONNX nodes: what the encoder's graph leaves for them, and one step.

B rows of memory, k beams a row, S source length, t symbols so far, D width, M memory width,
H heads, K head width. Vectors of a step are (k*B, D).
"""

from typing import Any

import numpy as np
from torch import nn

from regard.export.onnx_encoder import Vectors
from regard.export.onnx_graph import Graph, Size, Value
from regard.export.onnx_layers import (
    attend,
    enter,
    feed,
    leave,
    linear,
    norm,
    positions,
    queries,
    recurrence,
    refuse,
)
from regard.models.decoder import DecoderLayer, RecurrentDecoder, TransformerDecoder
from regard.nn.attention import CrossAttention, SelfAttention
from regard.nn.scores import Additive, Bilinear, Dot, FixedContext


class TransformerNodes:
    """Keys and values of the source are projected once; those of the target are joined on."""

    def __init__(self, decoder: TransformerDecoder) -> None:
        self.decoder = decoder
        for layer in decoder.layers:
            if not isinstance(layer, DecoderLayer):
                raise refuse(layer)

    def memory(self, source: Vectors) -> None:
        """What the steps need of the source, as outputs."""
        graph = source.graph
        graph.output("memory/bias", graph("Unsqueeze", source.bias(), graph.numbers(1, 2)), *BIAS)
        for i, layer in enumerate(self.decoder.layers):
            H, K = heads(layer.cross)
            both = linear(graph, layer.cross.project, source.data)
            for name, part in zip("kv", graph.several("Split", 2, both, axis=1, num_outputs=2)):
                perm, shape = ([0, 2, 3, 1], (K, "S")) if name == "k" else ([0, 2, 1, 3], ("S", K))
                part = graph("Transpose", source.spread(part, H, K), perm=perm)
                graph.output(f"memory/{i}/{name}", part, "B", H, *shape)

    def step(self, graph: Graph, x: Value) -> Value:
        """x (k*B, D) to (k*B, D)."""
        at = graph.cast(graph.input("at", np.int64, 1), np.float32)
        width = self.decoder.layers[0].attention.join.in_features
        place = positions(graph, self.decoder.positions, at, width)
        x = x if place is None else graph("Add", x, place)
        bias = graph.input("memory/bias", np.float32, *BIAS)
        rows = graph("Shape", bias, start=0, end=1)
        for i, layer in enumerate(self.decoder.layers):
            mixed = _look_back(graph, layer.attention, enter(graph, layer.attend, x), i)
            x = leave(graph, layer.attend, x, mixed)
            seen = enter(graph, layer.look, x)
            found, weights = _look_up(graph, layer.cross, seen, i, bias, rows)
            x = leave(graph, layer.look, x, found)
            x = feed(graph, layer.feedforward, layer.feed, x)
        graph.output("attention", weights, "B", layer.cross.heads, "k", "S")
        return norm(graph, self.decoder.norm, x)


BIAS: tuple[Size, ...] = ("B", 1, 1, "S")


def heads(attention: SelfAttention | CrossAttention) -> tuple[int, int]:
    """H and K."""
    return attention.heads, attention.join.in_features // attention.heads


def _look_back(graph: Graph, attention: SelfAttention, x: Value, i: int) -> Value:
    """Attention of the last symbol to itself and those before it."""
    H, K = heads(attention)
    parts = queries(graph, attention, attention.project, x)
    q, k, v = (
        graph.reshape(part, -1, H, 1, K)
        for part in graph.several("Split", 3, parts, axis=1, num_outputs=3)
    )
    for name, part in (("k", k), ("v", v)):
        before = graph.input(f"past/{i}/{name}", np.float32, "kB", H, "t", K)
        part = graph("Concat", before, part, axis=2)
        graph.output(f"next/{i}/{name}", part, "kB", H, "t + 1", K)
        k, v = (part, v) if name == "k" else (k, part)
    out, _ = attend(graph, q, graph("Transpose", k, perm=[0, 1, 3, 2]), v, None)
    return linear(graph, attention.join, graph.reshape(out, -1, H * K))


def _look_up(
    graph: Graph, attention: CrossAttention, x: Value, i: int, bias: Value, rows: Value
) -> tuple[Value, Value]:
    """What the last symbol finds in the source, and its attention (B, H, k, S).

    The beams of a sentence go together.
    """
    H, K = heads(attention)
    k = graph.input(f"memory/{i}/k", np.float32, "B", H, K, "S")
    v = graph.input(f"memory/{i}/v", np.float32, "B", H, "S", K)
    q = queries(graph, attention, attention.query, x)
    q = graph("Reshape", q, graph("Concat", rows, graph.numbers(-1, H, K), axis=0))
    out, weights = attend(graph, graph("Transpose", q, perm=[0, 2, 1, 3]), k, v, bias)
    out = graph.reshape(graph("Transpose", out, perm=[0, 2, 1, 3]), -1, H * K)
    return linear(graph, attention.join, out), weights


class RecurrentNodes:
    """The first hidden state comes from the source's summary."""

    def __init__(self, decoder: RecurrentDecoder) -> None:
        self.decoder = decoder
        self.width = decoder.join.out_features
        self.memory_width = decoder.join.in_features - self.width
        if type(decoder.score) not in (Additive, Bilinear, Dot, FixedContext):
            raise refuse(decoder.score)

    def memory(self, source: Vectors) -> None:
        """What the steps need of the source, and the first hidden state, as outputs."""
        graph, score = source.graph, self.decoder.score
        first = graph("Tanh", linear(graph, self.decoder.bridge, source.pooled()))
        names = self._hidden()
        parts = graph.several("Split", len(names), first, axis=1, num_outputs=len(names))
        for name, part in zip(names, parts, strict=True):
            graph.output(f"past/{name}", part, "B", self.width)
        if isinstance(score, FixedContext):
            graph.output("memory/data", source.pooled(), "B", self.memory_width)
            return
        graph.output("memory/data", source.spread(source.data, self.memory_width), *self._data())
        graph.output("memory/bias", graph("Unsqueeze", source.bias(), graph.numbers(1)), *SCORES)
        if not isinstance(score, Dot):
            keys = source.spread(linear(graph, score.key, source.data), self.width)
            if isinstance(score, Bilinear):
                keys = graph("Transpose", keys, perm=[0, 2, 1])
            graph.output("memory/keys", keys, *self._keys())

    def step(self, graph: Graph, x: Value) -> Value:
        """x (k*B, inputs) to (k*B, D)."""
        if self.decoder.feeding:
            last = graph.input("past/last", np.float32, "kB", self.width)
            x = graph("Concat", x, last, axis=1)
        body, one = self.decoder.body, graph.numbers(0)
        given = {
            name: graph.input(f"past/{name}", np.float32, "kB", self.width)
            for name in self._hidden()
        }
        start = [
            tuple(graph("Unsqueeze", given[name], one) for name in names)
            for names in self._by_layer()
        ]
        out, ends = recurrence(graph, body, graph("Unsqueeze", x, one), "", start)
        for names, parts in zip(self._by_layer(), ends, strict=True):
            for name, part in zip(names, parts, strict=True):
                graph.output(f"next/{name}", graph("Squeeze", part, one), "kB", self.width)
        h = graph("Squeeze", out, one)
        joined = graph("Concat", h, self._context(graph, h), axis=1)
        out = graph("Tanh", linear(graph, self.decoder.join, joined))
        if self.decoder.feeding:
            graph.output("next/last", out, "kB", self.width)
        return out

    def _hidden(self) -> list[str]:
        """The names of the hidden state, in the order of the bridge: part by part."""
        body = self.decoder.body
        return [f"{part}/{i}" for part in range(body.parts) for i in range(len(body.layers))]

    def _by_layer(self) -> list[list[str]]:
        """The names of the hidden state of each layer."""
        body = self.decoder.body
        return [[f"{part}/{i}" for part in range(body.parts)] for i in range(len(body.layers))]

    def _data(self) -> tuple[Size, ...]:
        return "B", "S", self.memory_width

    def _keys(self) -> tuple[Size, ...]:
        additive = isinstance(self.decoder.score, Additive)
        return ("B", "S", self.width) if additive else ("B", self.width, "S")

    def _context(self, graph: Graph, h: Value) -> Value:
        """The source as the states h (k*B, D) see it: (k*B, M)."""
        score = self.decoder.score
        fixed = isinstance(score, FixedContext)
        shape = ("B", self.memory_width) if fixed else self._data()
        data = graph.input("memory/data", np.float32, *shape)
        rows = graph("Shape", data, start=0, end=1)

        def folded(x: Value, *sizes: int) -> Value:
            return graph("Reshape", x, graph("Concat", rows, graph.numbers(-1, *sizes), axis=0))

        if fixed:
            each = graph("Shape", folded(h, self.width), start=1, end=2)  # k
            each = graph("Concat", rows, each, graph.numbers(self.memory_width), axis=0)
            data = graph("Expand", graph("Unsqueeze", data, graph.numbers(1)), each)
            return graph.reshape(data, -1, self.memory_width)
        bias = graph.input("memory/bias", np.float32, *SCORES)
        if isinstance(score, Dot):
            keys = graph("Transpose", data, perm=[0, 2, 1])
        else:
            keys = graph.input("memory/keys", np.float32, *self._keys())
        if isinstance(score, Additive):
            query = folded(linear(graph, score.query, h), 1, self.width)  # (B, k, 1, D)
            mixed = graph("Add", query, graph("Unsqueeze", keys, graph.numbers(1)))
            weigh = graph.changed(score.weigh.weight.T)
            scores = graph("MatMul", graph("Tanh", mixed), weigh)  # (B, k, S, 1)
            scores = graph("Squeeze", scores, graph.numbers(3))
        else:
            factor = getattr(score, "factor", 1.0)
            h = h if factor == 1 else graph("Mul", h, graph.scalar(factor))
            scores = graph("MatMul", folded(h, self.width), keys)
        weights = graph("Softmax", graph("Add", scores, bias), axis=-1)
        graph.output("attention", weights, "B", "k", "S")
        return graph.reshape(graph("MatMul", weights, data), -1, self.memory_width)


SCORES: tuple[Size, ...] = ("B", 1, "S")


def nodes_of(decoder: nn.Module) -> Any:
    """How this decoder is written."""
    if isinstance(decoder, TransformerDecoder):
        return TransformerNodes(decoder)
    if isinstance(decoder, RecurrentDecoder):
        return RecurrentNodes(decoder)
    raise refuse(decoder)
