"""Fast paths of standard Transformers: one compiled function runs all layers (`nn.fused_step`).

Keys and values of the source are projected once, before the first step.
B sentences, k beams per sentence, R = k * B rows, S source length, H heads, K head width, D width,
M memory width.
"""

from typing import Any

import torch
from torch import Tensor

from regard.data.tensors.padded import Padded
from regard.data.tensors.state import State
from regard.data.tensors.tree import Tree
from regard.models.fast_decoder import FastDecoder
from regard.nn.fast import compiled, padding_bias, warming_up
from regard.nn.fused import TILE, FusedLayer, FusedTable, norm_weights
from regard.nn.fused_step import decode, encode, fill, linear, normalize
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
        with warming_up():
            self(one_vector(self._weights[0][6]))

    def __call__(self, source: Padded) -> Padded:
        """Return the encoder output (B, S, D) for vectors (B, S, D)."""
        B, S = source.mask.shape
        x = self.positions.embed(source.data, 0).flatten(0, 1)  # (B*S, D)
        bias = padding_bias(source.mask, x)
        x = self._run(x, B, self._weights, bias, *self._style, TILE)
        return Padded(normalize(x, *self._norm).view(B, S, -1), source.mask)


class FastParallelDecoder:
    """A parallel decoder that runs all layers in one call, for all positions."""

    def __init__(self, layers: list[FusedLayer], positions: Position, norm: FusedNorm) -> None:
        self.positions, self._norm = positions, norm_weights(norm)
        self._weights, self._style = [layer.weights for layer in layers], layers[0].style
        self._keys = [layer.keys for layer in layers]
        self._run = compiled(fill)
        with warming_up():
            like = self._weights[0][6]
            memory, x = one_vector(self._keys[0][0][0].to(like.dtype)), one_vector(like)
            self(x.data, memory, self.memory_keys(memory), x.mask)

    def memory_keys(self, memory: Padded) -> list[Tree]:
        """Return the projected keys and values of the source for each layer."""
        return [projected(own, memory.data, self._style.heads) for own in self._keys]

    def __call__(self, x: Tensor, memory: Padded, keys: list[Tree], real: Tensor) -> Tensor:
        """Return the output (R, T, D) for x (R, T, D). real: mask (R, T), False for padding."""
        R, T = real.shape
        both = [list(part) for part in zip(*keys, strict=True)]
        biases = padding_bias(real, x), padding_bias(memory.mask, x)
        x = self.positions.embed(x, 0).flatten(0, 1)  # (R*T, D)
        x = self._run(x, R, self._weights, *both, *biases, *self._style, TILE)
        return normalize(x, *self._norm).view(R, T, -1)


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
        self.weights = [layer.weights for layer in layers]
        self.packed = all(w.is_floating_point() for own in self.weights for w in own)
        if self.packed:
            self.weights = [[_packed(w) for w in own] for own in self.weights]
        self.like = self.weights[0][6]  # (D,), always float
        self._positions: dict[int, Tensor] = {}
        self._run = compiled(decode)
        with warming_up():
            self._warm_up()

    def _warm_up(self) -> None:
        """Read one token."""
        memory = one_vector(self.keys[0][0][0].to(self.like.dtype)) if self.keys[0] else None
        past = {"at": 0, "shared": None, "layers": [None] * len(self.weights)}
        token = torch.zeros(1, 1, dtype=torch.long, device=self.like.device)
        self.step(token, self.start(memory, past))

    def start(self, memory: Padded | None, past: Tree) -> State:
        """Return the state before the first token, with projected keys and values."""
        if memory is None:
            return State({"encoded": None, "keys": [None] * len(self.keys), "bias": None}, past)
        keys = [projected(own, memory.data, self.style.heads) for own in self.keys]
        bias = padding_bias(memory.mask, memory.data)
        return State({"encoded": memory, "keys": keys, "bias": bias}, past)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        memory, past = state.memory, state.past
        encoded, like = memory["encoded"], self.like
        B = len(tokens) if encoded is None else len(encoded.mask)
        prepared, shared = self.kernel.prepare(past["shared"], len(tokens), B, 1, like)
        olds: list[Cache | None] = past["layers"]
        if prepared.take is not None:
            olds = [cache.take(prepared.take) for cache in olds if cache is not None]
        H, K = self.style.heads, self._width // self.style.heads
        full = [Cache.empty(like, B, H, K) if cache is None else cache for cache in olds]
        caches = [cache.reserve(len(tokens) // B) for cache in full]
        both: list[list[Tensor]] = [[], []]
        if encoded is not None:
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
            zeros = self.like.new_zeros(1, 1, self._width)
            self._positions[at] = self.positions.embed(zeros, at)[0]
        return self._positions[at]


def projected(project: list[Tensor], memory: Tensor, heads: int) -> Any:
    """Return the keys and values (B, H, S, K) of a layer for memory (B, S, M)."""
    B, S, M = memory.shape
    both = linear(memory.reshape(B * S, M), project, 0, False, TILE)
    both = both.view(B, S, 2, heads, -1).permute(2, 0, 3, 1, 4)
    return both.contiguous().unbind(0)


def _packed(weight: Tensor) -> Tensor:
    """Return a matrix transposed, which is fastest for few rows. Return a vector unchanged."""
    return weight.t().contiguous() if weight.dim() == 2 else weight


def one_vector(like: Tensor) -> Padded:
    """Return a source of one vector, with the width, dtype and device of `like` (D,)."""
    mask = torch.ones(1, 1, dtype=torch.bool, device=like.device)
    return Padded(torch.zeros_like(like).view(1, 1, -1), mask)
