"""Fast paths of standard Transformers: one compiled function runs all layers (`nn.fused`).

Keys and values of the source are projected once, before the first step.
B sentences, k beams per sentence, R = k * B rows, S source length, H heads, K head width, D width,
M memory width.
"""

from typing import Any

from torch import Tensor

from regard.data.tensors.padded import Padded
from regard.data.tensors.state import State
from regard.data.tensors.tree import Tree
from regard.models.fast_decoder import FastDecoder
from regard.nn.fast import compiled, padding_bias
from regard.nn.fused import (
    TILE,
    FusedLayer,
    FusedTable,
    decode,
    encode,
    linear,
    norm_weights,
    normalize,
)
from regard.nn.kernels.cache import Cache
from regard.nn.kernels.kernel import Kernel
from regard.nn.norms import FusedNorm
from regard.nn.positions import Position


class FastTransformerEncoder:
    """A Transformer encoder that runs all layers in one call."""

    def __init__(self, layers: list[FusedLayer], positions: Position, norm: FusedNorm) -> None:
        self.positions, self._norm = positions, norm_weights(norm)
        self._weights, self._style = [layer.weights for layer in layers], layers[0].style
        self._run = compiled(encode)

    def __call__(self, source: Padded) -> Padded:
        """Return the encoder output (B, S, D) for vectors (B, S, D)."""
        B, S = source.mask.shape
        x = self.positions.embed(source.data, 0).flatten(0, 1)  # (B*S, D)
        bias = padding_bias(source.mask, x)
        x = self._run(x, B, self._weights, bias, *self._style, TILE)
        return Padded(normalize(x, *self._norm).view(B, S, -1), source.mask)


class FastTransformerDecoder(FastDecoder):
    """A Transformer decoder that runs all layers in one call, for one token per row."""

    def __init__(
        self,
        layers: list[FusedLayer],
        positions: Position,
        norm: FusedNorm,
        table: FusedTable,
        kernel: Kernel,
    ) -> None:
        self.table, self.positions, self.kernel = table, positions, kernel
        self._norm, self._width = norm_weights(norm), table.weight.shape[1]
        self.style, self.keys = layers[0].style, [layer.keys for layer in layers]
        usual = self.style.norm == "layer" and self.style.activation == "relu"
        self.packed = usual and all(one.is_floating_point() for one in _all_weights(layers, table))
        self.weights = [layer.weights for layer in layers]
        if self.packed:
            self.weights = [[_packed(w) for w in own] for own in self.weights]
        self._positions: dict[int, Tensor] = {}
        self._run = compiled(decode)

    def start(self, memory: Padded, past: Tree) -> State:
        """Return the state before the first token, with projected keys and values."""
        keys = [self._projected(own, memory.data) for own in self.keys]
        bias = padding_bias(memory.mask, memory.data)
        return State({"encoded": memory, "keys": keys, "bias": bias}, past)

    def _projected(self, project: list[Tensor], memory: Tensor) -> Any:
        """Return the keys and values (B, H, S, K) of a layer for memory (B, S, M)."""
        B, S, M = memory.shape
        both = linear(memory.reshape(B * S, M), project, 0, False, TILE)
        both = both.view(B, S, 2, self.style.heads, -1).permute(2, 0, 3, 1, 4)
        return both.contiguous().unbind(0)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        memory, past = state.memory, state.past
        B, like = len(memory["encoded"].mask), memory["encoded"].data
        prepared, shared = self.kernel.prepare(past["shared"], len(tokens), B, 1, like)
        olds: list[Cache | None] = past["layers"]
        if prepared.take is not None:
            olds = [cache.take(prepared.take) for cache in olds if cache is not None]
        H, K = self.style.heads, self._width // self.style.heads
        full = [Cache.empty(like, B, H, K) if cache is None else cache for cache in olds]
        caches = [cache.reserve(len(tokens) // B) for cache in full]
        both = [list(part) for part in zip(*memory["keys"], strict=True)]
        x = self._run(
            tokens[:, 0],
            *self.table,
            self._position(past["at"]),
            self.weights,
            [cache.memory for cache in caches],
            *both,
            prepared.mask,
            memory["bias"],
            full[0].count,
            *self.style,
            self.packed,
            TILE,
        )
        after = {"at": past["at"] + 1, "shared": shared, "layers": caches}
        return normalize(x, *self._norm), State(memory, after)

    def _position(self, at: int) -> Tensor:
        """Return the position embedding (1, D) at this position."""
        if at not in self._positions:
            like = self.weights[0][0]
            self._positions[at] = self.positions.embed(like.new_zeros(1, 1, self._width), at)[0]
        return self._positions[at]


def _packed(weight: Tensor) -> Tensor:
    """Return a matrix transposed, which is fastest for few rows. Return a vector unchanged."""
    return weight.t().contiguous() if weight.dim() == 2 else weight


def _all_weights(layers: list[FusedLayer], table: FusedTable) -> list[Tensor]:
    return [table.weight, *(weight for layer in layers for weight in layer.weights)]
