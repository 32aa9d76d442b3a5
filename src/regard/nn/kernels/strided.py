"""Strided attention: a window of neighbors, and every position at a multiple of the stride.

Shapes: R rows, H heads, n positions, l stride, c = n / l columns, w keys of a window, K head width.
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
    repeat_heads,
)
from regard.nn.kernels.windows import exists, neighbor_positions, neighbors, pad_blocks


class StridedAttention(DenseAttention):
    """Softmax attention to positions at most `stride` away, or at a multiple of it (Child et al.
    2019, 4.2).

    Costs n * (stride + n / stride), which is n^1.5 with a stride of sqrt(n).
    """

    sparse: ClassVar[bool] = True

    def __init__(self, stride: int, causal: bool) -> None:
        super().__init__(causal)
        self.stride = stride

    def pattern(self, at_q: Tensor, at_k: Tensor, mask: AttentionMask) -> Tensor:
        distance = (at_q[:, None] - at_k[:, None]).abs()
        return (distance <= self.stride) | (distance % self.stride == 0)

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tree]:
        if not self.is_whole(mask, past):
            return super().forward(q, k, v, mask, past)
        n, keys, values = q.shape[2], repeat_heads(k, q.shape[1]), repeat_heads(v, q.shape[1])
        after, size = 0 if self.causal else 1, min(self.stride, q.shape[2])
        rows = pad_blocks(q, size).unflatten(2, (-1, size))  # (R, H, c, l, K)
        near, seen_near = self._near(rows, keys, mask, after)
        far, seen_far = self._far(rows, keys, mask)
        scores = torch.cat([near, far], -1)  # (R, H, c, l, w + c)
        seen = torch.cat([t.expand(len(q), *t.shape[1:]) for t in (seen_near, seen_far)], -1)
        weights = masked_softmax(scores, seen.unsqueeze(1))
        near, far = weights.split([near.shape[-1], far.shape[-1]], -1)
        windows = _windows(values, size, after)
        columns = pad_blocks(values, size).unflatten(2, (-1, size)).transpose(2, 3)
        out = near @ windows + (far.transpose(2, 3) @ columns).transpose(2, 3)
        return out.flatten(2, 3)[:, :, :n], self.first_cache(k, v)

    def _near(self, q: Tensor, k: Tensor, mask: AttentionMask, after: int) -> tuple[Tensor, Tensor]:
        """Return the scores (R, H, c, l, w) of neighbors, and which are visible (R|1, c, l, w)."""
        n, size = k.shape[2], q.shape[3]
        at_q, at_k = neighbor_positions(n, size, 1, after, q.device)
        offset = at_k[0] - at_q[0][:, None]
        visible = exists(at_k, n, mask.real).unsqueeze(2) & (offset.abs() <= size)
        visible = visible & (offset <= 0) if self.causal else visible
        scores = q @ _windows(k, size, after).transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask.positions.biases:
            blocks = q.transpose(1, 2).flatten(0, 1)
            bias = mask.positions.bias(blocks, at_q[0] + size, at_k[:1] + size)
            assert bias is not None  # (R * c|1, H, l, w)
            scores = scores + _unflat(bias, q.shape[2])
        return scores, visible

    def _far(self, q: Tensor, k: Tensor, mask: AttentionMask) -> tuple[Tensor, Tensor]:
        """Return the scores (R, H, c, l, c) of positions at a multiple of the stride.

        Also return which are visible (R|1, c, l, c): those that are not neighbors.
        """
        n, size, columns = k.shape[2], q.shape[3], q.shape[2]
        q = q.transpose(2, 3)  # (R, H, l, c, K)
        keys = pad_blocks(k, size).unflatten(2, (-1, size)).transpose(2, 3)
        scores = q @ keys.transpose(-2, -1) / q.shape[-1] ** 0.5  # (R, H, l, c, c)
        steps = torch.arange(columns, device=q.device)
        if mask.positions.biases:
            rows = q.transpose(1, 2).flatten(0, 1)
            bias = mask.positions.bias(rows, steps * size, (steps * size)[None])
            assert bias is not None  # (R * l|1, H, c, c)
            scores = scores + _unflat(bias, size)
        distance = steps[:, None] - steps  # query - key
        far = distance > 1 if self.causal else distance.abs() > 1
        at_k = torch.arange(columns * size, device=q.device).view(columns, size).t()  # (l, c)
        visible = exists(at_k, n, mask.real).unsqueeze(-2) & far  # (R|1, l, c, c)
        return scores.transpose(2, 3), visible.transpose(1, 2)


def _unflat(bias: Tensor, count: int) -> Tensor:
    """Return a bias (R * count|1, H, ...) as (R|1, H, count|1, ...)."""
    return bias.unflatten(0, (-1, 1 if len(bias) == 1 else count)).transpose(1, 2)


def _windows(x: Tensor, size: int, after: int) -> Tensor:
    """Return the neighbors of each block as (R, H, c, w, K)."""
    return neighbors(x, size, 1, after).unflatten(0, (len(x), -1)).transpose(1, 2)


class Strided(KernelOptions):
    """Softmax over neighbors and every stride-th position. Grows as n^1.5 with stride sqrt(n)."""

    supports: ClassVar[Supports] = Supports(cross=False, input_bias=False)
    kind: Literal["strided"] = "strided"
    stride: int = Field(16, gt=1, description="stride; about the square root of the length")

    def build(self, shape: Shape) -> Kernel:
        return StridedAttention(self.stride, shape.causal)
