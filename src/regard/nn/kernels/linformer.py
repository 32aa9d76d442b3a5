"""Linformer attention: keys and values are projected to a fixed number of slots.

Shapes: B sentences, R rows, H heads, T queries, S keys, m slots (`rank`), K head width.
"""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.data.tensors.tree import Tree
from regard.nn.kernels.dense import folded, unfolded
from regard.nn.kernels.kernel import (
    AttentionMask,
    Kernel,
    KernelOptions,
    Shape,
    Supports,
    check_length,
    real_keys,
)


class LinformerAttention(Kernel):
    """softmax(q (E k)^T / sqrt(K)) F v with learned E and F, m x length (Wang et al. 2020).

    Costs n * rank. shared: whether E and F are the same. Padding is masked before the projection.
    """

    implied: ClassVar[bool] = True
    normalized: ClassVar[bool] = False

    def __init__(self, length: int, rank: int, shared: bool) -> None:
        super().__init__()
        self.length = length
        self.keys = nn.Parameter(torch.randn(rank, length) * length**-0.5)
        self.values = None if shared else nn.Parameter(torch.randn(rank, length) * length**-0.5)

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, None]:
        return self.attend(q, self.memory(k, v, real_keys(k, mask)), real_keys(k, mask)), None

    def weights(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return what the projections amount to: softmax(q (E k)^T) F (R, H, T, S)."""
        return self.memory_weights(q, self.memory(k, v, real_keys(k, mask)), real_keys(k, mask))

    def memory(self, k: Tensor, v: Tensor, real: Tensor) -> Tree:
        """Return projected keys and values (B, H, m, K), and the values (B, H, S, K)."""
        S = k.shape[2]
        check_length("linformer", S, self.length)
        hidden = ~real[:, None, :, None]
        k, v = k.masked_fill(hidden, 0.0), v.masked_fill(hidden, 0.0)
        return self.keys[:, :S] @ k, self._value_weights(S) @ v, v

    def attend(self, q: Tensor, memory: Tree, real: Tensor) -> Tensor:
        keys, values, _ = memory
        return unfolded(_softmax(folded(q, len(real)), keys) @ values, q)

    def memory_weights(self, q: Tensor, memory: Tree, real: Tensor) -> tuple[Tensor, Tensor]:
        keys, _, v = memory
        slots = _softmax(folded(q, len(real)), keys)  # (B, H, k*T, m)
        found = (slots @ self._value_weights(v.shape[2])).masked_fill(~real[:, None, None], 0.0)
        return unfolded(found, q), v.repeat_interleave(len(q) // len(v), 0)

    def _value_weights(self, length: int) -> Tensor:
        """Return F (m, length)."""
        return (self.keys if self.values is None else self.values)[:, :length]


def _softmax(q: Tensor, keys: Tensor) -> Tensor:
    return (q @ keys.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)


class Linformer(KernelOptions):
    """Keys and values projected to a fixed number of slots. Linear, up to a maximum length."""

    supports: ClassVar[Supports] = Supports(
        causal=False, bias=False, input_bias=False, rotary=False
    )
    kind: Literal["linformer"] = "linformer"
    length: int = Field(512, gt=0, description="maximum number of positions")
    rank: int = Field(64, gt=0, description="number of slots")
    shared: bool = Field(True, description="use the same projection for keys and values")

    def build(self, shape: Shape) -> Kernel:
        return LinformerAttention(self.length, self.rank, self.shared)
