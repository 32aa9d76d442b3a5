"""Convolution as attention: the weight of a position depends only on its distance.

Shapes: R rows, H heads, T new positions, W weights per head, K head width.
"""

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regard.data.tensors.tree import Tree
from regard.nn.kernels.kernel import AttentionMask, Kernel, KernelOptions, Shape, Supports


class ConvolutionAttention(Kernel):
    """A mean of neighbors with learned weights per head and distance (Wu et al. 2019).

    With one head per distance, layers of it can express any convolution (Cordonnier et al. 2020).
    Beyond both ends of a row, neighbors are zeros. Costs n * window. If the kernel is causal, the
    past is the last `window` values.
    """

    traceable: ClassVar[bool] = False
    sparse: ClassVar[bool] = True
    normalized: ClassVar[bool] = False  # at both ends of a row, weights sum to less than one
    reads: tuple[str, ...] = ("value",)

    def __init__(self, window: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.window, self.causal = window, causal
        self.scores = nn.Parameter(torch.randn(heads, window + 1 if causal else 2 * window + 1))

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tree]:
        """Return the output (R, H, T, K), and the last values (R, H, window, K)."""
        R, H, T, K = v.shape
        if mask.real is not None:
            v = v.masked_fill(~mask.real[:, None, :, None], 0.0)
        after = 0 if self.causal else self.window
        if past is None:
            v = F.pad(v, (0, 0, self.window, after))
        else:
            v = torch.cat([past, v], 2)
        rows = v.permute(0, 3, 1, 2).flatten(0, 1)  # (R * K, H, T + W - 1)
        weights = self.scores.softmax(-1).unsqueeze(1).to(v.dtype)
        out = F.conv1d(rows, weights, groups=H).view(R, K, H, T).permute(0, 2, 3, 1)
        return out, v[:, :, T:] if self.causal else None

    def weights(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the weights of all pairs (R, H, T, T), and the values, without a past."""
        assert past is None
        at = torch.arange(v.shape[2], device=v.device)
        index = at - at[:, None] + self.window  # (T, T), of the distance
        inside = (index >= 0) & (index < self.scores.shape[1])
        found = self.scores.softmax(-1)[:, index.clamp(0, self.scores.shape[1] - 1)]
        visible = inside if mask.real is None else inside & mask.real[:, None, None]
        return found.masked_fill(~visible, 0.0).expand(len(v), -1, -1, -1), v


class Convolution(KernelOptions):
    """Learned weights per distance within a window, the same everywhere. Linear in the length."""

    supports: ClassVar[Supports] = Supports(cross=False, bias=False, input_bias=False, rotary=False)
    kind: Literal["convolution"] = "convolution"
    window: int = Field(3, gt=0, description="positions on each side")

    def build(self, shape: Shape) -> Kernel:
        return ConvolutionAttention(self.window, shape.heads, shape.causal)
