"""Reformer attention: positions that hash alike attend to each other.

Shapes: R rows, H heads, n positions, c positions per chunk, C = n / c chunks, K head width.
"""

from typing import ClassVar, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from regard.data.tensors.tree import Tree
from regard.nn.kernels.kernel import (
    AttentionMask,
    Kernel,
    KernelOptions,
    Shape,
    Supports,
    full_precision,
    real_keys,
)
from regard.nn.kernels.windows import pad_blocks

MAX_BUCKETS = 1024
SELF_PENALTY = -1e5  # a position attends to itself only if it attends to nothing else


class Hashed(NamedTuple):
    """The buckets (R, H, n) of a round, and the positions (R, H, n) sorted by bucket."""

    buckets: Tensor
    order: Tensor


class ReformerAttention(Kernel):
    """Attention among positions with the same hash, in chunks (Kitaev et al. 2020).

    Queries are also keys, which are normalized. In each of `rounds`, random rotations assign a
    bucket to each position. Positions are sorted by bucket and divided into chunks. A position
    attends to its bucket in its own chunk and the previous one. Costs n * chunk * rounds. The
    number of buckets follows the length of a row, never the padded one.
    """

    sparse: ClassVar[bool] = True
    reads: tuple[str, ...] = ("key", "value")
    rotations: Tensor

    def __init__(self, chunk: int, rounds: int, redraw: int, head_width: int) -> None:
        super().__init__()
        self.chunk, self.rounds, self.redraw = chunk, rounds, redraw
        self.register_buffer("rotations", torch.randn(rounds, head_width, MAX_BUCKETS // 2))

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, None]:
        real = real_keys(k, mask)
        with torch.autocast(k.device.type, enabled=False):
            k, values = full_precision(k), full_precision(v)
            found = [self._attend(k, values, real, one) for one in self.hash_rounds(k, real)]
            outs, sums = (torch.stack(part) for part in zip(*found, strict=True))
            shares = sums.softmax(0).unsqueeze(-1)  # (rounds, R, H, n, 1)
            return (shares * outs).sum(0).to(v.dtype), None

    def weights(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the weights of all pairs (R, H, n, n), and the values."""
        real, k = real_keys(k, mask), full_precision(k)
        n = k.shape[2]
        at = torch.arange(n, device=k.device)
        scores = _scores(k, k).masked_fill(at == at[:, None], SELF_PENALTY)
        rounds = []
        for buckets, order in self.hash_rounds(k, real):
            chunk = _ranks(order) // self.chunk
            behind = chunk.unsqueeze(3) - chunk.unsqueeze(2)  # query - key
            alike = buckets.unsqueeze(3) == buckets.unsqueeze(2)
            visible = alike & (behind >= 0) & (behind <= 1) & real[:, None, None]
            rounds.append(scores.masked_fill(~visible, torch.finfo(scores.dtype).min))
        stacked = torch.stack(rounds)
        lowest = torch.finfo(stacked.dtype).min
        shares = stacked.logsumexp(-1).softmax(0).unsqueeze(-1)
        each = stacked.softmax(-1).masked_fill(stacked == lowest, 0.0)
        return (shares * each).sum(0).to(v.dtype), v

    def advance(self, step: int, generator: torch.Generator) -> None:
        if self.redraw and step % self.redraw == 0:
            self.rotations.copy_(torch.randn(self.rotations.shape, generator=generator))

    def hash_rounds(self, k: Tensor, real: Tensor) -> list[Hashed]:
        """Return the buckets of each round. Padding has a bucket of its own, after all others."""
        n, lengths = k.shape[2], real.sum(1)
        half = (-(-lengths // self.chunk) + 1) // 2  # pairs of buckets per row
        columns = int(half.max().clamp(1, MAX_BUCKETS // 2))
        unused = torch.arange(columns, device=k.device) >= half[:, None, None, None]
        at, found = torch.arange(n, device=k.device), []
        for rotation in self.rotations[:, :, :columns]:
            turned = (k.detach() @ rotation).masked_fill(unused, 0.0)  # (R, H, n, columns)
            both = torch.stack([turned, -turned], -1).flatten(-2)
            buckets = both.argmax(-1)
            buckets = buckets.masked_fill((lengths <= self.chunk)[:, None, None], 0)
            buckets = buckets.masked_fill(~real[:, None], 2 * columns)
            found.append(Hashed(buckets, (buckets * n + at).argsort(-1)))
        return found

    def _attend(self, k: Tensor, v: Tensor, real: Tensor, hashed: Hashed) -> tuple[Tensor, Tensor]:
        """Return the output (R, H, n, K) of a round, and the logarithm of its sum of weights."""
        order, size = hashed.order, min(self.chunk, k.shape[2])
        index = order.unsqueeze(-1).expand(-1, -1, -1, k.shape[-1])
        keys, values = (_chunks(x.gather(2, index), size) for x in (k, v))
        seen = real[:, None].expand_as(order).gather(2, order)
        buckets = torch.where(seen, hashed.buckets.gather(2, order), -1)
        buckets, at = (_chunks(x + 1, size) for x in (buckets, order))  # 0: no position
        scores = _scores(keys, _with_previous(keys))  # (R, H, C, c, 2c)
        own = at.unsqueeze(-1) == _with_previous(at).unsqueeze(-2)
        others = _with_previous(buckets).unsqueeze(-2)
        visible = (buckets.unsqueeze(-1) == others) & (others > 0)
        scores = scores.masked_fill(own, SELF_PENALTY)
        scores = scores.masked_fill(~visible, torch.finfo(scores.dtype).min)
        out = scores.softmax(-1).masked_fill(~visible, 0.0) @ _with_previous(values)
        rank = _ranks(order)
        out = out.flatten(2, 3).gather(2, rank.unsqueeze(-1).expand_as(index))
        return out, scores.logsumexp(-1).flatten(2).gather(2, rank)


def _scores(q: Tensor, k: Tensor) -> Tensor:
    """Return the scores of queries and keys, which are normalized to unit length."""
    unit = k / k.norm(dim=-1, keepdim=True).clamp(min=1e-6)
    return q @ unit.transpose(-2, -1) / q.shape[-1] ** 0.5


def _ranks(order: Tensor) -> Tensor:
    """Return where each position is in `order` (R, H, n)."""
    at = torch.arange(order.shape[2], device=order.device)
    return torch.empty_like(order).scatter_(2, order, at.expand_as(order))


def _chunks(x: Tensor, size: int) -> Tensor:
    """Return (R, H, n, ...) as (R, H, C, c, ...), padded with zeros."""
    return pad_blocks(x, size).unflatten(2, (-1, size))


def _with_previous(x: Tensor) -> Tensor:
    """Return each chunk of (R, H, C, c, ...) after the chunk before it (zeros at first)."""
    before = torch.cat([torch.zeros_like(x[:, :, :1]), x[:, :, :-1]], 2)
    return torch.cat([before, x], 3)


class Reformer(KernelOptions):
    """Softmax among positions that hash alike, with shared queries and keys. Linear."""

    supports: ClassVar[Supports] = Supports(
        causal=False, cross=False, bias=False, input_bias=False, rotary=False
    )
    kind: Literal["reformer"] = "reformer"
    chunk: int = Field(32, gt=0, description="positions per chunk and, on average, per bucket")
    rounds: int = Field(2, gt=0, description="number of hash rounds")
    redraw: int = Field(1000, ge=0, description="updates between two samples of hashes; 0: never")

    def build(self, shape: Shape) -> Kernel:
        width = shape.width // shape.heads
        return ReformerAttention(self.chunk, self.rounds, self.redraw, width)
