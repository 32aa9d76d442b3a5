"""Nystroem attention: softmax attention through a few landmarks.

Shapes: R rows, H heads, n positions, m landmarks, K head width.
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
    masked_softmax,
    real_keys,
)


class Factors(NamedTuple):
    """The three factors of the attention matrix: (R, H, n, m), (R, H, m, m), (R, H, m, n)."""

    queries: Tensor
    inverse: Tensor
    keys: Tensor


class NystromAttention(Kernel):
    """softmax(q k'^T) pinv(softmax(q' k'^T)) softmax(q' k^T) v (Xiong et al. 2021).

    Costs n * landmarks. The landmarks q' and k' are means of segments of the row, which follow its
    own length, never the padded one. A row of fewer positions than landmarks has one per position.
    """

    implied: ClassVar[bool] = True
    normalized: ClassVar[bool] = False

    def __init__(self, landmarks: int, iterations: int) -> None:
        super().__init__()
        self.landmarks, self.iterations = landmarks, iterations

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, None]:
        with torch.autocast(q.device.type, enabled=False):
            found = self._factors(full_precision(q), full_precision(k), mask)
            out = found.queries @ (found.inverse @ (found.keys @ full_precision(v)))
        return out.to(v.dtype), None

    def weights(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the product of the three factors (R, H, n, n), and the values."""
        found = self._factors(full_precision(q), full_precision(k), mask)
        return (found.queries @ found.inverse @ found.keys).to(v.dtype), v

    def _factors(self, q: Tensor, k: Tensor, mask: AttentionMask) -> Factors:
        real = real_keys(k, mask)
        means, used = self._segments(real, q.dtype)  # (R, m, n), (R, m)
        q = q / q.shape[-1] ** 0.5
        q_marks, k_marks = means @ q, means @ k  # (R, H, m, K)
        marks, keys = used[:, None, None], real[:, None, None]
        core = masked_softmax(q_marks @ k_marks.transpose(-2, -1), marks)
        core = core * used[:, None, :, None] + torch.diag_embed((~used).to(core.dtype))[:, None]
        return Factors(
            masked_softmax(q @ k_marks.transpose(-2, -1), marks),
            pseudo_inverse(core, self.iterations),
            masked_softmax(q_marks @ k.transpose(-2, -1), keys) * used[:, None, :, None],
        )

    def _segments(self, real: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return the weights (R, 1, m, n) of segment means, and which segments exist (R, m)."""
        n = real.shape[1]
        lengths = real.sum(1, keepdim=True).clamp(min=1)  # (R, 1)
        count = lengths.clamp(max=self.landmarks)
        segment = torch.arange(n, device=real.device) * count // lengths  # (R, n)
        slots = torch.arange(min(self.landmarks, n), device=real.device)
        member = (segment[:, None] == slots[:, None]) & real[:, None]  # (R, m, n)
        means = member.to(dtype) / member.sum(-1, keepdim=True).clamp(min=1)
        return means.unsqueeze(1), slots < count


def pseudo_inverse(x: Tensor, iterations: int) -> Tensor:
    """Return the inverse of matrices (..., m, m) by iteration (Razavi et al. 2014)."""
    identity = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    largest = x.abs().sum(-2).amax(-1) * x.abs().sum(-1).amax(-1)
    z = x.transpose(-2, -1) / largest[..., None, None]
    for _ in range(iterations):
        xz = x @ z
        z = 0.25 * z @ (13 * identity - xz @ (15 * identity - xz @ (7 * identity - xz)))
    return z


class Nystrom(KernelOptions):
    """Softmax approximated through landmarks, means of segments. Linear in the length."""

    supports: ClassVar[Supports] = Supports(causal=False, cross=False, bias=False, input_bias=False)
    kind: Literal["nystrom"] = "nystrom"
    landmarks: int = Field(32, gt=0, description="number of landmarks")
    iterations: int = Field(6, gt=0, description="iterations of the pseudo-inverse")

    def build(self, shape: Shape) -> Kernel:
        return NystromAttention(self.landmarks, self.iterations)
