"""Attention by feature maps: phi(q) . phi(k) instead of exp(q . k), for linear kernels.

The sums over keys are S = sum phi(k) v^T and z = sum phi(k), kept as one matrix with the values
extended by a one. All sums are in float32.

Shapes: B sentences, k beams per sentence, R = k * B rows, H heads, T queries, S keys, m features,
c positions per chunk, K head width.
"""

from abc import abstractmethod
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.tensors.tree import Tree
from regard.nn.kernels.dense import folded, unfolded
from regard.nn.kernels.kernel import AttentionMask, Kernel, full_precision
from regard.nn.kernels.windows import pad_blocks

CHUNK = 64  # positions; within a chunk, causal attention is quadratic
MIN_SUM = 1e-30  # smallest sum of weights to divide by


class FeatureAttention(Kernel):
    """Attention with weights phi(q) . phi(k), divided by their sum. Costs n * features.

    If the kernel is causal, the past is the sum over earlier keys (R, H, m, K + 1): its size does
    not depend on the length (Katharopoulos et al. 2020, 3.4).
    """

    traceable: ClassVar[bool] = False
    implied: ClassVar[bool] = True

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    @abstractmethod
    def query_features(self, q: Tensor) -> Tensor:
        """Return the features (..., m) of queries (..., K), up to a factor per query."""

    @abstractmethod
    def key_features(self, k: Tensor) -> Tensor:
        """Return the features (..., m) of keys (..., K)."""

    def relative_key_features(self, k: Tensor, real: Tensor | None) -> Tensor:
        """Return the features (R, H, S, m) of all keys of a row, up to a factor per head.

        real: (R, S), True unless padding; None: no padding.
        """
        return self.key_features(k)

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tree]:
        with torch.autocast(q.device.type, enabled=False):
            queries = self.query_features(full_precision(q))
            keys, values = self._features(k, v, mask.real)
            if self.causal:
                sums, past = causal_sums(queries, keys, values, past)
            else:
                sums, past = queries @ (keys.transpose(-2, -1) @ values), None
            return _divide(sums).to(v.dtype), past

    def weights(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the weights of all pairs (R, H, T, T), and the values, without a past."""
        assert past is None
        keys, _ = self._features(k, v, mask.real)
        products = self.query_features(full_precision(q)) @ keys.transpose(-2, -1)
        products = products.tril() if self.causal else products
        return (products / products.sum(-1, keepdim=True).clamp(min=MIN_SUM)).to(v.dtype), v

    def memory(self, k: Tensor, v: Tensor, real: Tensor) -> Tree:
        """Return the sums (B, H, m, K + 1) over keys; also keys and values, for inspection."""
        with torch.autocast(k.device.type, enabled=False):
            keys, values = self._features(k, v, real)
            return keys.transpose(-2, -1) @ values, k, v

    def attend(self, q: Tensor, memory: Tree, real: Tensor) -> Tensor:
        with torch.autocast(q.device.type, enabled=False):
            sums = self.query_features(full_precision(folded(q, len(real)))) @ memory[0]
            return unfolded(_divide(sums).to(q.dtype), q)

    def memory_weights(self, q: Tensor, memory: Tree, real: Tensor) -> tuple[Tensor, Tensor]:
        _, k, v = memory
        keys, _ = self._features(k, v, real)
        products = self.query_features(full_precision(folded(q, len(real)))) @ keys.transpose(
            -2, -1
        )
        found = products / products.sum(-1, keepdim=True).clamp(min=MIN_SUM)
        return unfolded(found.to(q.dtype), q), v.repeat_interleave(len(q) // len(v), 0)

    def _features(self, k: Tensor, v: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the features of keys and the values with a one appended; zeros for padding."""
        k = full_precision(k)
        keys = self.key_features(k) if self.causal else self.relative_key_features(k, real)
        values = F.pad(full_precision(v), (0, 1), value=1.0)
        if real is None:
            return keys, values
        hidden = ~real[:, None, :, None]
        return keys.masked_fill(hidden, 0.0), values.masked_fill(hidden, 0.0)


def causal_sums(q: Tensor, k: Tensor, v: Tensor, past: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return sum_{j <= i} (q_i . k_j) v_j of each position, and the sum of all k_j v_j^T.

    Features q and k (R, H, T, m), values v (R, H, T, K), past (R, H, m, K). Chunks are summed one
    after the other; within a chunk all pairs are computed.
    """
    T = q.shape[2]
    if past is None:
        past = v.new_zeros(*q.shape[:2], q.shape[3], v.shape[3])
    if T == 1:
        past = past + k.transpose(-2, -1) @ v
        return q @ past, past
    q, k, v = (pad_blocks(x, CHUNK).unflatten(2, (-1, CHUNK)) for x in (q, k, v))
    sums = k.transpose(-2, -1) @ v  # (R, H, chunks, m, K)
    totals = torch.cat([past.unsqueeze(2), sums], 2).cumsum(2)
    within = (q @ k.transpose(-2, -1)).tril() @ v
    out = within + q @ totals[:, :, :-1]
    return out.flatten(2, 3)[:, :, :T], totals[:, :, -1]


def _divide(sums: Tensor) -> Tensor:
    """Return weighted means (..., K) from sums (..., K + 1), whose last column sums the weights."""
    return sums[..., :-1] / sums[..., -1:].clamp(min=MIN_SUM)
