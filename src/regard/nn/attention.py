"""Multi-head attention: project, split into heads, attend, join.

B rows, k beams, S memory length, T length, D width, H heads, K head width, n entries of a cache.
"""

from typing import Any

import torch
from torch import Tensor, nn

from regard.data.tensors.padded import Padded
from regard.data.tensors.state import fold, unfold
from regard.nn.ablation import zero_ablated
from regard.nn.capture_hooks import record_attention

ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-4}  # of the largest value


class SelfAttention(nn.Module):
    """Multi-head self-attention (Vaswani et al. 2017, 3.2.2)."""

    def __init__(self, width: int, heads: int, kernel: nn.Module) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width)
        self.kernel = kernel
        nn.init.xavier_uniform_(self.project.weight)
        nn.init.zeros_(self.project.bias)

    def forward(
        self, x: Tensor, mask: Tensor | None, past: Any, causal: bool
    ) -> tuple[Tensor, Any]:
        """x (k*B, T, D) to (k*B, T, D) and what later steps need.

        mask: with B rows and k*T queries where k beams share the past of their sentence.
        """
        folded = x if mask is None else fold(x, len(mask))
        q, k, v = (
            self.project(folded).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        )  # each (B, H, k*T, K)
        out, after = self.kernel(q, k, v, mask, past, causal)
        # Only beams fold, and only a decoder has a past: then the mask tells entries of a cache.
        shared = mask if len(folded) < len(x) or past is not None else None

        def weights() -> Tensor:
            found = explicit(self.kernel, (q, after.keys, after.values), mask, causal, out)
            found = _unfolded(found, x)
            return found if shared is None else _placed(found, shared)

        record_attention(self, weights, at="itself")
        out = zero_ablated(self, out)
        return unfold(self.join(out.transpose(1, 2).flatten(2)), x), after


class CrossAttention(nn.Module):
    """Multi-head attention from the target to the source; keys are projected once a sentence."""

    def __init__(self, width: int, memory_width: int, heads: int, kernel: nn.Module) -> None:
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

    def forward(
        self, x: Tensor, memory: Padded, keys: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """x (k*B, T, D) to the same shape, and the projected keys and values of memory."""
        if keys is None:
            keys = (
                self.project(memory.data)
                .unflatten(-1, (2, self.heads, -1))
                .permute(2, 0, 3, 1, 4)
                .unbind(0)
            )  # each (B, H, S, K)
        q = self.query(fold(x, len(memory.data))).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        mask = memory.mask[:, None, None, :]  # (B, 1, 1, S)
        out, _ = self.kernel(q, *keys, mask, None, False)
        looked = (q, *keys)
        record_attention(
            self,
            lambda: _unfolded(explicit(self.kernel, looked, mask, False, out), x),
            at="source",
        )
        found = zero_ablated(self, out)
        return unfold(self.join(found.transpose(1, 2).flatten(2)), x), keys


def explicit(
    kernel: Any,
    looked: tuple[Tensor, Tensor, Tensor],
    mask: Tensor | None,
    causal: bool,
    out: Tensor,
) -> Tensor:
    """The attention (B, H, T, S) of a kernel that gave `out` for these queries, keys and values.

    It is checked: what is shown is what was used.
    """
    q, keys, values = looked
    weights: Tensor = kernel.weights(q, keys, mask, causal)
    off = (weights @ values - out).detach().abs().amax()
    largest = values.detach().abs().amax().clamp(min=1.0)
    if not bool(off <= ROUNDING.get(out.dtype, 0.05) * largest):
        raise RuntimeError(
            f"{type(kernel).__name__}: its explicit attention gives other numbers than its fast "
            f"path, by {float(off):.2g}"
        )
    return weights


def _unfolded(weights: Tensor, x: Tensor) -> Tensor:
    """(B, H, k*T, S) as (k*B, H, T, S), for x (k*B, T, D)."""
    return unfold(weights.transpose(1, 2), x).transpose(1, 2)


def _placed(weights: Tensor, mask: Tensor) -> Tensor:
    """(k*B, H, T, n) to (k*B, H, T, places): of a cache that beams share each one's own entries.

    mask: (B, 1, k*T, n), 0 where a symbol of a beam sees an entry. All beams are as long.
    """
    rows, H, T, _ = weights.shape
    own = mask.reshape(rows, T, -1)[:, -1] == 0  # (k*B, n)
    places = own.nonzero()[:, 1].view(rows, -1)  # in their order in time
    return weights.gather(-1, places[:, None, None].expand(-1, H, T, -1))
