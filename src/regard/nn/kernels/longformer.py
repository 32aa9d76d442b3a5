"""Longformer attention: a dilated window of neighbors, and a few global positions.

Shapes: R rows, H heads, n positions, d dilation, g global positions, s queries and w keys per
block, K head width.
"""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from regard.data.tensors.tree import Tree
from regard.nn.kernels.dense import DenseAttention
from regard.nn.kernels.kernel import (
    AttentionMask,
    Kernel,
    KernelOptions,
    Shape,
    Supports,
    masked_softmax,
    real_keys,
    repeat_heads,
)
from regard.nn.kernels.windows import (
    attend_blocks,
    join_blocks,
    neighbor_positions,
    neighbors,
    pad_blocks,
    query_blocks,
    with_first,
)


class LongformerAttention(DenseAttention):
    """Attention to a dilated window and to the first `tokens` positions (Beltagy et al. 2020).

    Costs n * (window + tokens). The global positions attend to all positions, with their own
    queries and keys; values are shared. If the kernel is causal, they attend to the past only.
    """

    sparse: ClassVar[bool] = True

    def __init__(self, window: int, dilation: int, tokens: int, causal: bool) -> None:
        super().__init__(causal)
        self.window, self.dilation, self.tokens = window, dilation, tokens
        if tokens and not causal:
            self.extra = ("global_query", "global_key")
            self.reads = (*self.reads, *self.extra)

    def pattern(self, at_q: Tensor, at_k: Tensor, mask: AttentionMask) -> Tensor:
        offset = at_q[:, None] - at_k[:, None]
        near = (offset.abs() <= self.window * self.dilation) & (offset % self.dilation == 0)
        return near | (at_k < self.tokens)[:, None]

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tree]:
        if not self.is_whole(mask, past):
            return super().forward(q, k, v, mask, past)
        keys, values = repeat_heads(k, q.shape[1]), repeat_heads(v, q.shape[1])
        out = self._sparse(q, keys, values, mask)
        if extra:
            queries, global_keys = extra
            out = with_first(out, [queries[:, :, : self.tokens], global_keys, values], mask)
        return out, self.first_cache(k, v)

    def _sparse(self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask) -> Tensor:
        """Return the output of positions that attend to their window and the global positions."""
        n, d = q.shape[2], self.dilation
        size = self._block(n)
        count, after = min(self.tokens, n), 0 if self.causal else 1
        split = [_residues(x, d) for x in (q, k, v)]  # (R * d, H, n / d, K)
        real = real_keys(k[:1], mask)
        at_q, at_k, visible = self._keys(n, count, after, real)
        blocks = [query_blocks(split[0], size)]  # (R * d * blocks, H, s, K)
        for own, x in zip(split[1:], (k, v), strict=True):
            first = x[:, None, :, :count].expand(-1, len(blocks[0]) // len(q), -1, -1, -1)
            blocks.append(torch.cat([first.flatten(0, 1), neighbors(own, size, 1, after)], 2))
        visible = visible.repeat(len(q) // len(real), 1, 1)
        out = attend_blocks(blocks, visible, mask.positions, at_q, at_k.repeat(len(q), 1))
        return _joined(join_blocks(out, len(q) * d, -(-n // d)), len(q), n)

    def _block(self, n: int) -> int:
        """Return the positions per block of queries: the window, unless a row is shorter."""
        return min(self.window, -(-n // self.dilation))

    def _keys(self, n: int, count: int, after: int, real: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return positions of queries (s,) and keys (d * blocks, w), relative to the first query.

        Also return which keys are visible (R|1 * d * blocks, s, w). Global keys are first.
        """
        size, d, device = self._block(n), self.dilation, real.device
        rows = -(-n // d)  # positions per residue class
        own_q, own_k = neighbor_positions(rows, size, 1, after, device)
        residue = torch.arange(d, device=device)[:, None, None]
        queries, near = own_q * d + residue, own_k * d + residue  # (d, blocks, s), (d, blocks, w)
        first = torch.arange(count, device=device).expand(*near.shape[:2], -1)
        keys = torch.cat([first, near], -1)
        exists = (keys >= 0) & (keys < n) & real[:, keys.clamp(0, n - 1)]  # (R|1, d, blocks, w)
        offset = keys.unsqueeze(2) - queries.unsqueeze(3)  # (d, blocks, s, w)
        is_first = torch.arange(keys.shape[-1], device=device) < count
        visible = is_first | ((offset.abs() <= size * d) & (keys.unsqueeze(2) >= count))
        visible = visible & (offset <= 0) if self.causal else visible
        visible = exists.unsqueeze(3) & visible  # (R|1, d, blocks, s, w)
        relative = keys - queries[..., :1]
        return torch.arange(size, device=device) * d, relative.flatten(0, 1), visible.flatten(0, 2)

    def weights(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tensor]:
        weights, values = super().weights(q, k, v, mask, past)
        if not extra:
            return weights, values
        count = min(self.tokens, q.shape[2])
        queries, keys = extra[0][:, :, :count], extra[1]
        scores = queries @ keys.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask.positions.biases:
            at = torch.arange(q.shape[2], device=q.device)
            bias = mask.positions.bias(queries, at[:count], at[None])
            assert bias is not None
            scores = scores + bias
        real = None if mask.real is None else mask.real[:, None, None]
        return torch.cat([masked_softmax(scores, real), weights[:, :, count:]], 2), values


def _residues(x: Tensor, d: int) -> Tensor:
    """Return x (R, H, n, K) as (R * d, H, n / d, K): positions with the same residue modulo d."""
    if d == 1:
        return x
    return pad_blocks(x, d).unflatten(2, (-1, d)).permute(0, 3, 1, 2, 4).flatten(0, 1)


def _joined(x: Tensor, rows: int, n: int) -> Tensor:
    """Undo `_residues`: return (R * d, H, n / d, K) as (R, H, n, K)."""
    if len(x) == rows:
        return x
    return x.unflatten(0, (rows, -1)).permute(0, 2, 3, 1, 4).flatten(2, 3)[:, :, :n]


class Longformer(KernelOptions):
    """Softmax over a dilated window and a few global positions. Linear in the length."""

    supports: ClassVar[Supports] = Supports(cross=False, input_bias=False, rotary=False)
    kind: Literal["longformer"] = "longformer"
    window: int = Field(32, gt=0, description="positions on each side, before dilation")
    dilation: int = Field(1, gt=0, description="distance between the positions of the window")
    tokens: int = Field(1, ge=0, description="positions at the start that are global")

    def build(self, shape: Shape) -> Kernel:
        return LongformerAttention(self.window, self.dilation, self.tokens, shape.causal)
