"""Full softmax attention.

Shapes: B sentences, k beams per sentence, R = k * B rows, H heads, G heads of keys and values,
T queries, S keys, K head width.
"""

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from regard.data.tensors.tree import Tree
from regard.nn.kernels.dense import DenseAttention, folded, unfolded
from regard.nn.kernels.kernel import AttentionMask, Kernel, KernelOptions, Shape


class SoftmaxAttention(DenseAttention):
    """softmax(q k^T / sqrt(K)) v (Vaswani et al. 2017, eq. 1).

    use_fused: compute it by torch's fused kernel, without a matrix of scores. scaled: whether
    scores are divided by sqrt(K).
    """

    def __init__(self, causal: bool = False, use_fused: bool = True, scaled: bool = True) -> None:
        super().__init__(causal)
        self.use_fused, self.scaled = use_fused, scaled

    @property
    def fuses(self) -> bool:  # type: ignore[override]
        """Return whether the fused step (`nn.fused`) computes the same."""
        return self.scaled

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        found = q @ k.transpose(-2, -1)
        return found / q.shape[-1] ** 0.5 if self.scaled else found

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tree]:
        if not self.use_fused:
            return super().forward(q, k, v, mask, past)
        queries, keys, values, after = self._entries(q, k, v, mask, past)
        T, S = queries.shape[2], keys.shape[2]
        biased = mask.bias is not None or mask.positions.biases
        shared = mask.prepared is not None and mask.prepared.mask is not None
        is_causal = self.causal and not biased and not shared and mask.real is None and 1 < T == S
        attn_mask = None if is_causal else self._mask(q, T, S, mask)
        return unfolded(self._fused(queries, keys, values, attn_mask, is_causal), q), after

    def attend(self, q: Tensor, memory: Tree, real: Tensor) -> Tensor:
        if not self.use_fused:
            return super().attend(q, memory, real)
        k, v = memory
        mask = real[:, None, None, :]  # (B, 1, 1, S)
        out = self._call(folded(q, len(real)), k, v, mask, is_causal=False)
        return unfolded(out, q)

    def _fused(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, is_causal: bool
    ) -> Tensor:
        """Return the output of torch's fused attention.

        On a CPU it runs in float32, also under autocast: the gradient of the fused kernel takes ten
        times as long in bfloat16.
        """
        if q.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
            return self._call(q, k, v, mask, is_causal)
        with torch.autocast("cpu", enabled=False):
            mask = mask.float() if mask is not None and mask.is_floating_point() else mask
            return self._call(q.float(), k.float(), v.float(), mask, is_causal)

    def _call(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, is_causal: bool
    ) -> Tensor:
        return F.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=mask,
            is_causal=is_causal,
            scale=None if self.scaled else 1.0,
            enable_gqa=k.shape[1] != q.shape[1],
        )


class Softmax(KernelOptions):
    """Full softmax attention: every position attends to every other. Quadratic."""

    aligns: ClassVar[bool] = True
    kind: Literal["softmax"] = "softmax"
    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    fused: bool = Field(True, description="use torch's fused kernel; false: an explicit matrix")
    scale: bool = Field(True, description="divide scores by the square root of the head width")

    def not_exported(self, engine: str) -> list[str]:
        return [] if self.scale else ["scale=false"]

    def build(self, shape: Shape) -> Kernel:
        return SoftmaxAttention(shape.causal, self.fused, self.scale)
