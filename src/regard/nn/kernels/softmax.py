"""Softmax attention, the full kind.

B rows, H heads, T queries, S keys, K head width.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.options import Options
from regard.nn.kernels.cache import Cache


class SoftmaxAttention(nn.Module):
    """softmax(q k^T / sqrt(K)) v (Vaswani et al. 2017, eq. 1), by torch's fused kernel."""

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, past: Cache | None, causal: bool
    ) -> tuple[Tensor, Cache]:
        """q (B, H, T, K), k and v (B, H, S, K) to (B, H, T, K) and the keys and values so far.

        mask: boolean (True = visible) or a number to add, broadcast to (B, H, T, S).
        past: keys and values of earlier steps, put before these.
        """
        after = Cache.of(k, v) if past is None else past.add(k, v)
        k, v = after.keys, after.values
        T, S = q.shape[2], k.shape[2]
        whole = causal and T == S and T > 1 and mask is None
        if causal and T > 1 and not whole:
            seen = torch.ones(T, S, dtype=torch.bool, device=q.device).tril(S - T)
            mask = _both(mask, seen)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=whole)
        return out, after

    def weights(self, q: Tensor, k: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """The attention itself, (B, H, T, S): the slow twin of `forward`, for looking at it."""
        T, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5  # (B, H, T, S)
        if causal:
            seen = torch.ones(T, S, dtype=torch.bool, device=q.device).tril(S - T)
            scores = scores.masked_fill(~seen, float("-inf"))
        if mask is not None and mask.dtype == torch.bool:
            scores = scores.masked_fill(~mask, float("-inf"))
        elif mask is not None:
            scores = scores + mask
        return scores.softmax(-1)


def _both(mask: Tensor | None, seen: Tensor) -> Tensor:
    """A mask (boolean, or a number to add) that hides what is not seen as well."""
    if mask is None:
        return seen
    return mask & seen if mask.dtype == torch.bool else mask.masked_fill(~seen, float("-inf"))


class Softmax(Options):
    """Every position sees every other."""

    kind: Literal["softmax"] = "softmax"

    def build(self) -> SoftmaxAttention:
        return SoftmaxAttention()
