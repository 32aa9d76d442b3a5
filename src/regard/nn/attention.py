"""Multi-head attention: project, split into heads, attend, join.

B sentences, k beams, R = k * B rows, S memory length, T length, D width, H heads, K head width.
"""

import torch
from torch import Tensor, nn

from regard.data.tensors.padded import Padded
from regard.data.tensors.tree import Tree
from regard.nn.ablation import zero_ablated
from regard.nn.capture_hooks import record_attention
from regard.nn.fast import claim
from regard.nn.fused import FusedBranch, fused_branch, fused_map
from regard.nn.kernels.kernel import AttentionMask, Kernel

PROJECTIONS = ("query", "key", "value")
NOTHING = torch.empty(0)  # in place of a projection that a kernel does not read
ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-4}  # of the largest value


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
        """x (R, T, D) to (R, T, D), and what later steps need."""
        reads = self.kernel.reads
        parts = split(self.project(x), len(reads), self.heads)
        q, k, v = (parts[reads.index(n)] if n in reads else NOTHING for n in PROJECTIONS)
        if mask.positions.rotates:
            q, k = mask.positions.rotate(q, k, mask.at)
        out, after = self.kernel(q, k, v, mask, past)
        if self.kernel.traceable or past is None:
            record_attention(
                self,
                lambda: checked(self.kernel, *self.kernel.weights(q, k, v, mask, past), out),
                at="itself",
            )
        out = zero_ablated(self, out, mask.sentences)
        return self.join(out.transpose(1, 2).flatten(2)), after

    def fused(self) -> FusedBranch | None:
        """Its maps, if the fused step computes what it computes."""
        if not claim(self.kernel, "fuses"):
            return None
        return fused_branch(self.project, self.join, self.heads)


class CrossAttention(nn.Module):
    """Multi-head attention from the target to the source; keys are projected once a sentence."""

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
        """x (R, T, D) to the same shape, and what the kernel keeps of the memory."""
        real = memory.mask
        if keys is None:
            k, v = split(self.project(memory.data), 2, self.heads)  # (B, H, S, K)
            keys = self.kernel.memory(k, v, real)
        (q,) = split(self.query(x), 1, self.heads)
        out = self.kernel.attend(q, keys, real)
        record_attention(
            self,
            lambda: checked(self.kernel, *self.kernel.memory_weights(q, keys, real), out),
            at="source",
        )
        out = zero_ablated(self, out, len(real))
        return self.join(out.transpose(1, 2).flatten(2)), keys

    def fused(self) -> FusedBranch | None:
        """Its maps, if the fused step computes what it computes."""
        keys = fused_map(self.project)
        found = fused_branch(self.query, self.join, self.heads)
        if found is None or keys is None or not claim(self.kernel, "fuses"):
            return None
        return found._replace(keys=keys)


def split(x: Tensor, count: int, heads: int) -> tuple[Tensor, ...]:
    """Projections (B, T, count * D) side by side as `count` of (B, H, T, K)."""
    return x.unflatten(-1, (count, heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)


def checked(kernel: Kernel, weights: Tensor, values: Tensor, out: Tensor) -> Tensor:
    """The explicit attention (R, H, T, S) of a kernel that gave `out`; what is shown is what was
    used."""
    off = (weights @ values - out).detach().abs().amax()
    largest = values.detach().abs().amax().clamp(min=1.0)
    if not bool(off <= ROUNDING.get(out.dtype, 0.05) * largest):
        raise RuntimeError(
            f"{type(kernel).__name__}: its explicit attention gives other numbers than its fast "
            f"path, by {float(off):.2g}"
        )
    return weights
