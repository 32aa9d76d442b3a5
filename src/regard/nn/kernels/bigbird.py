"""BigBird attention: neighboring blocks, global blocks and random blocks.

Shapes: R rows, H heads, n positions, b positions per block, c = n / b blocks, r random blocks,
w keys per block of queries, K head width.
"""

from typing import ClassVar, Literal, NamedTuple

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
    join_blocks,
    neighbor_positions,
    neighbors,
    pad_blocks,
    query_blocks,
    with_first,
)


class BlockCounts(NamedTuple):
    """Which blocks a block attends to: neighbors on each side, first blocks, and random ones."""

    size: int
    window: int
    first: int
    random: int


class BigBirdAttention(DenseAttention):
    """Attention to neighboring, global and random blocks (Zaheer et al. 2020).

    Costs n * size * (window + first + random). Random blocks depend on the length of the row, never
    on padding, and stay the same for a model. Positions of the first blocks attend to everything,
    or, if the kernel is causal, to everything before them.
    """

    sparse: ClassVar[bool] = True
    seed: Tensor

    def __init__(self, blocks: BlockCounts, causal: bool) -> None:
        super().__init__(causal)
        self.blocks = blocks
        self.register_buffer("seed", torch.randint(2**31, ()))

    def pattern(self, at_q: Tensor, at_k: Tensor, mask: AttentionMask) -> Tensor:
        size, window, first, _ = self.blocks
        query, key = at_q[:, None] // size, (at_k // size)[:, None]  # (T, 1), (R|1, 1, S)
        count = int(max(query.max(), key.max())) + 1
        blocks = torch.arange(int(query.min()), int(query.max()) + 1, device=at_q.device)
        found, chosen = self._random(blocks, count, mask)  # (R|1, blocks, r)
        random = torch.zeros(len(found), len(blocks), count, dtype=torch.bool, device=at_q.device)
        random.scatter_(2, found, chosen)
        row = torch.arange(len(random), device=at_q.device)[:, None, None]
        chosen = random[row, query - blocks[0], key]
        visible = chosen | ((query - key).abs() <= window) | (key < first)
        return visible if self.causal else visible | (query < first)

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tree]:
        if not self.is_whole(mask, past):
            return super().forward(q, k, v, mask, past)
        keys, values = repeat_heads(k, q.shape[1]), repeat_heads(v, q.shape[1])
        out = self._sparse(q, keys, values, mask)
        count = self.blocks.first * self.blocks.size
        if count and not self.causal:
            out = with_first(out, [q[:, :, :count], keys, values], mask)
        return out, self.first_cache(k, v)

    def _sparse(self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask) -> Tensor:
        """Return the output of blocks that attend to their own list of blocks."""
        R, n = len(q), q.shape[2]
        blocks = self._fitted(n)
        size, count = blocks.size, -(-n // blocks.size)
        every = torch.arange(count, device=q.device)
        random, chosen = self._random(every, count, mask)  # (R|1, c, r)
        random, chosen = random.expand(R, -1, -1), chosen.expand(R, -1, -1)
        lists = []
        for x in (k, v):
            x = pad_blocks(x, size)
            cut = x.unflatten(2, (count, size))  # (R, H, c, b, K)
            row = torch.arange(R, device=q.device)[:, None, None]
            some = cut.transpose(1, 2)[row, random]  # (R, c, r, H, b, K)
            some = some.transpose(2, 3).flatten(3, 4).flatten(0, 1)  # (R * c, H, r * b, K)
            head = x[:, None, :, : blocks.first * size].expand(-1, count, -1, -1, -1)
            near = neighbors(x, size, blocks.window, self._after(blocks))
            lists.append(torch.cat([head.flatten(0, 1), near, some], 2))
        at_k, visible = self._keys(n, blocks, random, chosen, mask.real)
        at_q = torch.arange(size, device=q.device)
        base = at_q.new_tensor(range(0, n, size))[:, None]
        relative = (at_k - base).flatten(0, 1)  # (R * c, w)
        parts = [query_blocks(q, size), *lists]
        out = attend_blocks(parts, visible.flatten(0, 1), mask.positions, at_q, relative)
        return join_blocks(out, R, n)

    def _fitted(self, n: int) -> BlockCounts:
        """Return the counts for n positions: no block is longer than a row."""
        size = min(self.blocks.size, n)
        window, first = (min(x, -(-n // size)) for x in (self.blocks.window, self.blocks.first))
        return self.blocks._replace(size=size, window=window, first=first)

    def _after(self, blocks: BlockCounts) -> int:
        """Return the number of neighbors after a block."""
        return 0 if self.causal else blocks.window

    def _keys(
        self, n: int, blocks: BlockCounts, random: Tensor, chosen: Tensor, real: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the positions (R, c, w) of keys, and which of them are visible (R, c, b, w)."""
        R, size, first = len(random), blocks.size, blocks.first * blocks.size
        inside = torch.arange(size, device=random.device)
        at_q, near = neighbor_positions(n, size, blocks.window, self._after(blocks), random.device)
        head = torch.arange(first, device=random.device).expand(len(near), -1)
        parts = [head, near.masked_fill(near < first, -1)]  # global blocks count once
        some = (random * size).masked_fill(~chosen, n).unsqueeze(-1) + inside  # (R, c, r, b)
        at_k = torch.cat([torch.cat(parts, -1).expand(R, -1, -1), some.flatten(2)], -1)
        visible = (at_k >= 0) & (at_k < n)
        if real is not None:
            visible &= real.gather(1, at_k.clamp(0, n - 1).flatten(1)).view_as(at_k)
        visible = visible.unsqueeze(2).expand(-1, -1, size, -1)
        if self.causal:
            visible = visible & (at_k.unsqueeze(2) <= at_q.unsqueeze(-1))
        return at_k, visible

    def _random(self, blocks: Tensor, count: int, mask: AttentionMask) -> tuple[Tensor, Tensor]:
        """Return r random blocks, of `count`, of each of these blocks (R|1, blocks, r).

        Also return which of them count. A row of few blocks has fewer candidates: blocks that are
        neither near nor global.
        """
        _, window, first, wanted = self.blocks
        query, key = blocks[:, None], torch.arange(count, device=blocks.device)[None]
        free = (key < query - window) if self.causal else (query - key).abs() > window
        free = (free & (key >= first))[None]
        if mask.real is not None and not self.causal:
            lengths = mask.real.sum(1)
            free = free & (key < -(-lengths // self.blocks.size)[:, None, None])
        order = _hashed(query, key, self.seed).masked_fill(~free, -1)
        best = order.topk(min(wanted, count), -1)
        return best.indices, best.values >= 0


def _hashed(one: Tensor, other: Tensor, seed: Tensor) -> Tensor:
    """Return pseudo-random numbers of pairs, at least 0, which depend on nothing else."""
    x = (one * 0x9E3779B1 + other * 0x85EBCA77 + seed * 0xC2B2AE3D) & 0xFFFFFFFF
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = ((x ^ (x >> shift)) * factor) & 0xFFFFFFFF
    return x ^ (x >> 16)


class BigBird(KernelOptions):
    """Softmax over neighboring, global and random blocks. Linear in the length."""

    supports: ClassVar[Supports] = Supports(cross=False, input_bias=False)
    kind: Literal["bigbird"] = "bigbird"
    size: int = Field(16, gt=0, description="positions per block")
    window: int = Field(1, ge=0, description="neighboring blocks on each side")
    first: int = Field(1, ge=0, description="blocks at the start that are global")
    random: int = Field(2, ge=0, description="random blocks per block")

    def build(self, shape: Shape) -> Kernel:
        counts = BlockCounts(self.size, self.window, self.first, self.random)
        return BigBirdAttention(counts, shape.causal)
