"""Multi-head attention: project, split into heads, attend, join.

Shapes: B sentences, k beams per sentence, R = k * B rows, S memory length, T length, D width,
H heads, K head width. The memory is the encoder output. The past is what the kernel keeps from step
to step, such as a key-value cache.
"""

import torch
from torch import Tensor, nn

from regard.data.tensors.padded import Padded
from regard.data.tensors.tree import Tree
from regard.nn.ablation import zero_ablated
from regard.nn.capture_hooks import record_attention
from regard.nn.fast import claim
from regard.nn.fused import FusedBranch, fused_branch, fused_linear
from regard.nn.kernels.kernel import AttentionMask, Kernel

PROJECTIONS = ("query", "key", "value")
EMPTY = torch.empty(0)  # for a projection that a kernel does not read
# Maximum error of recorded attention, relative to the largest value.
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}


class SelfAttention(nn.Module):
    """Multi-head self-attention (Vaswani et al. 2017, 3.2.2)."""

    def __init__(self, width: int, heads: int, kernel: Kernel) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, len(kernel.reads) * width)
        self.join = nn.Linear(width, width)
        self.kernel = kernel
        nn.init.xavier_uniform_(self.project.weight)
        nn.init.zeros_(self.project.bias)

    def forward(self, x: Tensor, mask: AttentionMask, past: Tree) -> tuple[Tensor, Tree]:
        """Return the output (R, T, D) for x (R, T, D), and the new past."""
        reads = self.kernel.reads
        parts = split(self.project(x), len(reads), self.heads)
        q, k, v = (parts[reads.index(n)] if n in reads else EMPTY for n in PROJECTIONS)
        if mask.positions.rotates:
            q, k = mask.positions.rotate(q, k, mask.at)
        out, after = self.kernel(q, k, v, mask, past)
        if self.kernel.traceable or past is None:
            record_attention(
                self,
                lambda: check_weights(self.kernel, *self.kernel.weights(q, k, v, mask, past), out),
                at="itself",
            )
        out = zero_ablated(self, out, mask.sentences)
        return self.join(out.transpose(1, 2).flatten(2)), after

    def fused(self) -> FusedBranch | None:
        """Return the weights for the fused step (`nn.fused`); None if it is not supported."""
        if not claim(self.kernel, "fuses"):
            return None
        return fused_branch(self.project, self.join, self.heads)


class CrossAttention(nn.Module):
    """Multi-head attention from target to source. The memory is projected once per sentence."""

    def __init__(self, width: int, memory_width: int, heads: int, kernel: Kernel) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.project = nn.Linear(memory_width, 2 * width)
        self.join = nn.Linear(width, width)
        self.kernel = kernel
        nn.init.xavier_uniform_(self.query.weight)
        nn.init.xavier_uniform_(self.project.weight)
        nn.init.zeros_(self.query.bias)
        nn.init.zeros_(self.project.bias)

    def forward(self, x: Tensor, memory: Padded, keys: Tree) -> tuple[Tensor, Tree]:
        """Return the output (R, T, D) for x (R, T, D), and the projected memory.

        keys: the projected memory from an earlier call, or None.
        """
        real = memory.mask
        if keys is None:
            k, v = split(self.project(memory.data), 2, self.heads)  # (B, H, S, K)
            keys = self.kernel.memory(k, v, real)
        (q,) = split(self.query(x), 1, self.heads)
        out = self.kernel.attend(q, keys, real)
        record_attention(
            self,
            lambda: check_weights(self.kernel, *self.kernel.memory_weights(q, keys, real), out),
            at="source",
        )
        out = zero_ablated(self, out, len(real))
        return self.join(out.transpose(1, 2).flatten(2)), keys

    def fused(self) -> FusedBranch | None:
        """Return the weights for the fused step (`nn.fused`); None if it is not supported."""
        keys = fused_linear(self.project)
        found = fused_branch(self.query, self.join, self.heads)
        if found is None or keys is None or not claim(self.kernel, "fuses"):
            return None
        return found._replace(keys=keys)


def split(x: Tensor, count: int, heads: int) -> tuple[Tensor, ...]:
    """Split concatenated projections (B, T, count * D) into `count` tensors (B, H, T, K)."""
    return x.unflatten(-1, (count, heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)


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
