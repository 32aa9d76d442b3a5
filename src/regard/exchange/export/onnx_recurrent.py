"""Recurrent decoders as ONNX nodes.

The encoder graph computes the memory, which is what all decoder steps need of the source. The step
graph computes one decoder step.

Shapes: B sentences, k beams per sentence, S source length, D width, M memory width. Vectors of a
step are (k*B, D).
"""

import numpy as np

from regard.exchange.export.onnx_encoder import OnnxVectors
from regard.exchange.export.onnx_graph import Graph, Size, Value
from regard.exchange.export.onnx_layers import linear, recurrence, unsupported
from regard.models.recurrent import RecurrentDecoder
from regard.nn.attention_scores import AdditiveScore, BilinearScore, DotScore, FixedContext

SCORES: tuple[Size, ...] = ("B", 1, "S")


class RecurrentNodes:
    """A writer of the nodes of a recurrent decoder."""

    def __init__(self, decoder: RecurrentDecoder) -> None:
        self.decoder = decoder
        self.width = decoder.join.out_features
        self.memory_width = decoder.join.in_features - self.width
        if type(decoder.score) not in (AdditiveScore, BilinearScore, DotScore, FixedContext):
            raise unsupported(decoder.score)
        # The bridge outputs h of all layers and then, for an LSTM, c of all layers.
        layers, parts = range(len(decoder.body.layers)), range(decoder.body.parts)
        self.hidden = [f"{part}/{layer}" for part in parts for layer in layers]
        self.by_layer = [[f"{part}/{layer}" for part in parts] for layer in layers]

    def memory(self, source: OnnxVectors) -> None:
        """Add the initial hidden state, the source vectors and their keys to the encoder graph."""
        graph, score, count = source.graph, self.decoder.score, len(self.hidden)
        summary = source.pooled()
        first = graph("Tanh", linear(graph, self.decoder.bridge, summary))
        parts = graph.several("Split", count, first, axis=1, num_outputs=count)
        for name, part in zip(self.hidden, parts, strict=True):
            graph.output(f"past/{name}", part, "B", self.width)
        if isinstance(score, FixedContext):
            graph.output("memory/data", summary, "B", self.memory_width)
            return
        data = source.spread(source.data, self.memory_width)
        graph.output("memory/data", data, "B", "S", self.memory_width)
        graph.output("memory/bias", graph("Unsqueeze", source.bias(), graph.numbers(1)), *SCORES)
        if isinstance(score, AdditiveScore | BilinearScore):
            keys = source.spread(linear(graph, score.key, source.data), self.width)
            if isinstance(score, BilinearScore):
                keys = graph("Transpose", keys, perm=[0, 2, 1])
            graph.output("memory/keys", keys, *self._keys())

    def step(self, graph: Graph, x: Value) -> Value:
        """Add one step of the recurrent layers, then attention to the source."""
        one = graph.numbers(0)
        if self.decoder.input_feeding:
            last = graph.input("past/last", np.float32, "kB", self.width)
            x = graph("Concat", x, last, axis=1)
        states = {
            name: graph.input(f"past/{name}", np.float32, "kB", self.width) for name in self.hidden
        }
        start = [
            tuple(graph("Unsqueeze", states[name], one) for name in names)
            for names in self.by_layer
        ]
        h, ends = recurrence(
            graph, self.decoder.body, graph("Unsqueeze", x, one), start=start
        )  # (1, k*B, D)
        for names, parts in zip(self.by_layer, ends, strict=True):
            for name, part in zip(names, parts, strict=True):
                graph.output(f"next/{name}", graph("Squeeze", part, one), "kB", self.width)
        h = graph("Squeeze", h, one)
        joined = graph("Concat", h, self._context(graph, h), axis=1)
        out = graph("Tanh", linear(graph, self.decoder.join, joined))
        if self.decoder.input_feeding:
            graph.output("next/last", out, "kB", self.width)
        return out

    def _context(self, graph: Graph, h: Value) -> Value:
        """Return the context vectors (k*B, M) of the states h (k*B, D)."""
        if isinstance(self.decoder.score, FixedContext):
            data = graph.input("memory/data", np.float32, "B", self.memory_width)
            each = graph("Shape", graph.folded(h, data, self.width), start=0, end=2)  # B and k
            each = graph("Concat", each, graph.numbers(self.memory_width), axis=0)
            every = graph("Expand", graph("Unsqueeze", data, graph.numbers(1)), each)
            return graph.reshape(every, -1, self.memory_width)
        data = graph.input("memory/data", np.float32, "B", "S", self.memory_width)
        bias = graph.input("memory/bias", np.float32, *SCORES)
        scores = graph("Add", self._scores(graph, h, data), bias)
        weights = graph("Softmax", scores, axis=-1)  # (B, k, S)
        graph.output("attention", weights, "B", "k", "S")
        return graph.reshape(graph("MatMul", weights, data), -1, self.memory_width)

    def _scores(self, graph: Graph, h: Value, data: Value) -> Value:
        """Return the score (B, k, S) of each source position for each state h (k*B, D)."""
        score = self.decoder.score
        if isinstance(score, DotScore):
            h = h if score.factor == 1 else graph("Mul", h, graph.scalar(score.factor))
            keys = graph("Transpose", data, perm=[0, 2, 1])
            return graph("MatMul", graph.folded(h, data, self.width), keys)
        keys = graph.input("memory/keys", np.float32, *self._keys())
        if not isinstance(score, AdditiveScore):
            return graph("MatMul", graph.folded(h, data, self.width), keys)
        query = graph.folded(linear(graph, score.query, h), data, 1, self.width)  # (B, k, 1, D)
        mixed = graph("Add", query, graph("Unsqueeze", keys, graph.numbers(1)))
        weigh = graph.constant(score.weigh.weight.T)
        return graph("Squeeze", graph("MatMul", graph("Tanh", mixed), weigh), graph.numbers(3))

    def _keys(self) -> tuple[Size, ...]:
        """Return the shape of the keys."""
        additive = isinstance(self.decoder.score, AdditiveScore)
        return ("B", "S", self.width) if additive else ("B", self.width, "S")
