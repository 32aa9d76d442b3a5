"""Block attention: each position attends to its own block of the sequence.

Shapes: R rows, H heads, T new positions, K head width.
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
    repeat_heads,
)
from regard.nn.kernels.windows import (
    attend_blocks,
    exists,
    join_blocks,
    neighbor_positions,
    query_blocks,
)


class BlockAttention(DenseAttention):
    """Softmax attention within blocks of `size` positions (Qiu et al. 2020, the diagonal blocks).

    Costs n * size. Blocks start at position 0, so padding and length do not matter.
    """

    sparse: ClassVar[bool] = True

    def __init__(self, size: int, causal: bool) -> None:
        super().__init__(causal)
        self.size = size

    def pattern(self, at_q: Tensor, at_k: Tensor, mask: AttentionMask) -> Tensor:
        return (at_q // self.size)[:, None] == (at_k // self.size)[:, None]

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tree]:
        if not self.is_whole(mask, past):
            return super().forward(q, k, v, mask, past)
        n = q.shape[2]
        size = min(self.size, n)
        at_q, at_k = neighbor_positions(n, size, 0, 0, q.device)
        visible = exists(at_k, n, mask.real).unsqueeze(2)  # (R|1, blocks, 1, s)
        if self.causal:
            visible = visible & torch.ones(size, size, dtype=torch.bool, device=q.device).tril()
        blocks = [query_blocks(repeat_heads(x, q.shape[1]), size) for x in (q, k, v)]
        visible = visible.expand(len(q), -1, -1, -1).flatten(0, 1)
        out = attend_blocks(blocks, visible, mask.positions, at_q[0], at_k[:1])
        return join_blocks(out, len(q), n), self.first_cache(k, v)


class Block(KernelOptions):
    """Softmax within blocks of the sequence, which do not see each other. Linear in the length."""

    supports: ClassVar[Supports] = Supports(cross=False, input_bias=False)
    kind: Literal["block"] = "block"
    size: int = Field(64, gt=0, description="positions per block")

    def build(self, shape: Shape) -> Kernel:
        return BlockAttention(self.size, shape.causal)
