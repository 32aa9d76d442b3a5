"""Multi-head attention: project, split into heads, attend, join.

Shapes: B sentences, k beams per sentence, R = k * B rows, S memory length, T length, D width,
H heads, G heads of keys and values, K head width. The memory is the encoder output. The past is
what the kernel keeps from step to step, such as a key-value cache.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.data.tensors.padded import Padded
from regard.data.tensors.tree import Tree
from regard.nn.ablation import zero_ablated
from regard.nn.capture import MapKind
from regard.nn.capture_hooks import record_attention
from regard.nn.fast import claim
from regard.nn.fused import FusedBranch, fused_branch, fused_linear
from regard.nn.kernels.kernel import AttentionMask, Kernel, repeat_heads

PROJECTIONS = ("query", "key", "value")
EMPTY = torch.empty(0)  # for a projection that a kernel does not read
# Maximum error of recorded attention, relative to the largest value.
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}


class HeadSizes(NamedTuple):
    """The heads of an attention layer.

    kv_heads: heads of keys and values, each for a group of queries (Shazeer 2019: 1; Ainslie et al.
    2023). qk_norm: whether queries and keys are normalized per head (Henry et al. 2020).
    """

    width: int
    heads: int
    kv_heads: int
    qk_norm: bool = False

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def is_plain(self) -> bool:
        """Return whether the fused step (`nn.fused`) supports these heads."""
        return self.kv_heads == self.heads and not self.qk_norm

    def counts(self, reads: Sequence[str]) -> list[int]:
        """Return the number of heads of each projection."""
        return [self.kv_heads if name in ("key", "value") else self.heads for name in reads]


class QKNorm(nn.Module):
    """RMS norms of queries and keys, per head, so that scores cannot grow without bound."""

    def __init__(self, head_width: int) -> None:
        super().__init__()
        self.query = nn.RMSNorm(head_width, eps=1e-6)
        self.key = nn.RMSNorm(head_width, eps=1e-6)

    def of(self, name: str, x: Tensor) -> Tensor:
        """Return a projection, such as `global_query`, normalized as queries or as keys are."""
        return self.query(x) if name.endswith("query") else self.key(x)


class SelfAttention(nn.Module):
    """Multi-head self-attention (Vaswani et al. 2017, 3.2.2)."""

    def __init__(self, sizes: HeadSizes, kernel: Kernel) -> None:
        super().__init__()
        self.heads, self.sizes = sizes.heads, sizes
        self.counts = sizes.counts(kernel.reads)
        width = sizes.width
        self.project = nn.Linear(width, sum(self.counts) * sizes.head_width)
        self.join = nn.Linear(width, width)
        self.kernel = kernel
        self.qk_norm = QKNorm(sizes.head_width) if sizes.qk_norm else None
        nn.init.xavier_uniform_(self.project.weight)
        nn.init.zeros_(self.project.bias)

    def forward(self, x: Tensor, mask: AttentionMask, past: Tree) -> tuple[Tensor, Tree]:
        """Return the output (R, T, D) for x (R, T, D), and the new past."""
        kernel, reads = self.kernel, self.kernel.reads
        parts = split(self.project(x), self.counts)
        q, k, v = (parts[reads.index(n)] if n in reads else EMPTY for n in PROJECTIONS)
        extra = parts[len(reads) - len(kernel.extra) :] if kernel.extra else ()
        if self.qk_norm is not None:
            q, k = self.qk_norm.query(q), self.qk_norm.key(k)
            extra = tuple(map(self.qk_norm.of, kernel.extra, extra))
        if mask.positions.rotates:
            q, k = mask.positions.rotate(q, k, mask.at)
        if not kernel.grouped:
            k, v = (repeat_heads(x, self.heads) if len(x) else x for x in (k, v))
        out, after = kernel(q, k, v, mask, past, *extra)
        if kernel.traceable or past is None:
            record_attention(
                self,
                lambda: check_weights(kernel, *kernel.weights(q, k, v, mask, past, *extra), out),
                at="itself",
                kind=map_kind(kernel),
            )
        out = zero_ablated(self, out, mask.sentences)
        return self.join(out.transpose(1, 2).flatten(2)), after

    def fused(self) -> FusedBranch | None:
        """Return the weights for the fused step (`nn.fused`); None if it is not supported."""
        if not claim(self.kernel, "fuses") or not self.sizes.is_plain:
            return None
        return fused_branch(self.project, self.join, self.heads)


class CrossAttention(nn.Module):
    """Multi-head attention from target to source. The memory is projected once per sentence."""

    def __init__(self, sizes: HeadSizes, memory_width: int, kernel: Kernel) -> None:
        super().__init__()
        self.heads, self.sizes = sizes.heads, sizes
        width = sizes.width
        self.query = nn.Linear(width, width)
        self.project = nn.Linear(memory_width, 2 * sizes.kv_heads * sizes.head_width)
        self.join = nn.Linear(width, width)
        self.kernel = kernel
        self.qk_norm = QKNorm(sizes.head_width) if sizes.qk_norm else None
        nn.init.xavier_uniform_(self.query.weight)
        nn.init.xavier_uniform_(self.project.weight)
        nn.init.zeros_(self.query.bias)
        nn.init.zeros_(self.project.bias)

    def project_memory(self, memory: Padded) -> Tree:
        """Return the memory as the kernel keeps it, which does not depend on the queries."""
        k, v = split(self.project(memory.data), [self.sizes.kv_heads] * 2)  # (B, G, S, K)
        k = k if self.qk_norm is None else self.qk_norm.key(k)
        if not self.kernel.grouped:
            k, v = repeat_heads(k, self.heads), repeat_heads(v, self.heads)
        return self.kernel.memory(k, v, memory.mask)

    def forward(self, x: Tensor, memory: Padded, keys: Tree) -> tuple[Tensor, Tree]:
        """Return the output (R, T, D) for x (R, T, D), and the projected memory.

        keys: the projected memory from an earlier call, or None.
        """
        real = memory.mask
        if keys is None:
            keys = self.project_memory(memory)
        (q,) = split(self.query(x), [self.heads])
        q = q if self.qk_norm is None else self.qk_norm.query(q)
        out = self.kernel.attend(q, keys, real)
        record_attention(
            self,
            lambda: check_weights(self.kernel, *self.kernel.memory_weights(q, keys, real), out),
            at="source",
            kind=map_kind(self.kernel),
        )
        out = zero_ablated(self, out, len(real))
        return self.join(out.transpose(1, 2).flatten(2)), keys

    def fused(self) -> FusedBranch | None:
        """Return the weights for the fused step (`nn.fused`); None if it is not supported."""
        keys = fused_linear(self.project)
        found = fused_branch(self.query, self.join, self.heads)
        if found is None or keys is None or not claim(self.kernel, "fuses"):
            return None
        if not self.sizes.is_plain:
            return None
        return found._replace(keys=keys)


def map_kind(kernel: Kernel) -> MapKind:
    """Return what the recorded weights of a kernel are."""
    causal = bool(getattr(kernel, "causal", False))
    return MapKind(kernel.implied, kernel.normalized, kernel.sparse, causal)


def split(x: Tensor, counts: Sequence[int]) -> tuple[Tensor, ...]:
    """Split concatenated projections (B, T, all heads * K) into tensors (B, H, T, K).

    counts: the number of heads of each.
    """
    if len(set(counts)) == 1:
        return x.unflatten(-1, (len(counts), counts[0], -1)).permute(2, 0, 3, 1, 4).unbind(0)
    return x.unflatten(-1, (sum(counts), -1)).transpose(1, 2).split(list(counts), 1)


def check_weights(kernel: Kernel, weights: Tensor, values: Tensor, out: Tensor) -> Tensor:
    """Return weights (R, H, T, S). Raise RuntimeError unless weights @ values equals `out`."""
    error = (weights @ values - out).detach().abs().amax()
    largest = values.detach().abs().amax().clamp(min=1.0)
    if not bool(error <= TOLERANCE.get(out.dtype, 0.05) * largest):
        raise RuntimeError(
            f"{type(kernel).__name__}: explicit attention and fast path differ by "
            f"{float(error):.2g}"
        )
    return weights
