"""Local attention: each position attends to its neighbors.

Shapes: R rows, H heads, T new positions, m remembered positions, K head width.
"""

from collections.abc import Sequence
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
    repeat_heads,
)
from regard.nn.kernels.windows import (
    attend_blocks,
    exists,
    join_blocks,
    neighbor_positions,
    neighbors,
    query_blocks,
)


class LocalAttention(DenseAttention):
    """Softmax attention to at most `window` positions on each side (Beltagy et al. 2020, 3.1).

    Costs n * window. If the kernel is causal, the past keeps only the last `window` positions.
    """

    sparse: ClassVar[bool] = True
    traceable: ClassVar[bool] = False

    def __init__(self, window: int, causal: bool) -> None:
        super().__init__(causal)
        self.window = window

    def pattern(self, at_q: Tensor, at_k: Tensor, mask: AttentionMask) -> Tensor:
        return (at_q[:, None] - at_k[:, None]).abs() <= self.window

    def prepare(  # type: ignore[override]
        self, shared: Tree, rows: int, sentences: int, new: int, like: Tensor
    ) -> tuple[None, None]:
        """Return nothing: each row remembers its own positions."""
        return None, None

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tree]:
        """Return the output (R, H, T, K), and the last keys and values (R, G, m, K)."""
        if not self.causal:
            return self._whole(q, k, v, mask), None
        if past is None:
            return self._whole(q, k, v, mask), (k[:, :, -self.window :], v[:, :, -self.window :])
        outs = []
        for piece in zip(*(x.split(self.window, 2) for x in (q, k, v)), strict=True):
            out, past = self._step(piece, mask, past)
            outs.append(out)
            mask = mask._replace(at=mask.at + out.shape[2])
        return torch.cat(outs, 2), past

    def _whole(self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask) -> Tensor:
        """Return the output for all positions, in blocks of at most `window` positions."""
        n, before, after = q.shape[2], 1, 0 if self.causal else 1
        size = min(self.window, n)
        at_q, at_k = neighbor_positions(n, size, before, after, q.device)
        offset = at_k[0] - at_q[0][:, None]  # (s, w), the same for all blocks
        near = (offset.abs() <= self.window) & ((offset <= 0) | (not self.causal))
        visible = exists(at_k, n, mask.real).unsqueeze(2) & near  # (R|1, blocks, s, w)
        visible = visible.expand(len(q), -1, -1, -1).flatten(0, 1)
        lists = (neighbors(repeat_heads(x, q.shape[1]), size, before, after) for x in (k, v))
        blocks = [query_blocks(q, size), *lists]
        out = attend_blocks(blocks, visible, mask.positions, at_q[0] + size, at_k[:1] + size)
        return join_blocks(out, len(q), n)

    def _step(self, new: Sequence[Tensor], mask: AttentionMask, past: Tree) -> tuple[Tensor, Tree]:
        """Return the output for at most `window` new positions (q, k, v), and the new past."""
        q, k, v = new
        k, v = (torch.cat(both, 2) for both in zip(past, (k, v), strict=True))
        at_q = torch.arange(q.shape[2], device=q.device) + k.shape[2] - q.shape[2]
        at_k = torch.arange(k.shape[2], device=q.device)
        offset = at_k - at_q[:, None]
        visible = (offset <= 0) & (offset >= -self.window)
        blocks = [repeat_heads(x, q.shape[1]) for x in (q, k, v)]
        out = attend_blocks(blocks, visible[None], mask.positions, at_q, at_k[None])
        return out, (k[:, :, -self.window :], v[:, :, -self.window :])

    def weights(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the weights (R, H, T, T) and values of a call without a past."""
        assert past is None
        return super().weights(q, k, v, mask._replace(sentences=len(q)), None)


class Local(KernelOptions):
    """Softmax over a window of neighbors. Linear in the length."""

    supports: ClassVar[Supports] = Supports(cross=False, input_bias=False)
    kind: Literal["local"] = "local"
    window: int = Field(32, gt=0, description="positions on each side that a position attends to")

    def build(self, shape: Shape) -> Kernel:
        return LocalAttention(self.window, shape.causal)
