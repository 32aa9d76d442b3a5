"""The attention layer that is measured: projections and kernel, without the rest of a model.

Shapes: B rows, n positions, D width.
"""

from collections.abc import Iterable
from math import isqrt
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.core.suggest import suggest_names
from regard.data.tensors.tree import Tree
from regard.nn.attention import HeadSizes, SelfAttention
from regard.nn.kernels import SEQUENCE_KERNELS, Softmax
from regard.nn.kernels.kernel import AttentionMask, KernelOptions, Shape
from regard.nn.positions import Position

WIDTH, HEADS, ROWS = 128, 2, 1
FUSED, EXPLICIT = "softmax", "softmax-explicit"
KINDS: dict[str, Any] = {**SEQUENCE_KERNELS}
KERNELS = (FUSED, EXPLICIT, *(kind for kind in KINDS if kind != FUSED))


def check_kernels(names: Iterable[str]) -> list[str]:
    """Return the kernels to measure, fused softmax first; raise UserError for unknown names."""
    for name in names:
        if name not in KERNELS:
            raise UserError(f"--kernels {name}: unknown kernel{suggest_names(name, KERNELS)}")
    return list(dict.fromkeys([FUSED, *names]))


def kernel_options(kernel: str, length: int) -> KernelOptions:
    """Return the settings of a kernel: the defaults, except those that depend on the length."""
    if kernel == EXPLICIT:
        return Softmax(fused=False)
    kind = KINDS[kernel]
    by_length = {"length": length, "stride": max(2, isqrt(length))}
    return kind(**{key: value for key, value in by_length.items() if key in kind.model_fields})


def build_layer(kernel: str, length: int, causal: bool) -> SelfAttention:
    """Return an attention layer with newly initialized weights."""
    options = kernel_options(kernel, length)
    return SelfAttention(HeadSizes(WIDTH, HEADS, HEADS), options.build(Shape(WIDTH, HEADS, causal)))


def is_causal(kernel: str) -> bool:
    """Return whether a kernel supports decoding."""
    return kernel_options(kernel, 1).supports.causal


def attend(layer: SelfAttention, x: Tensor) -> Tensor:
    """Return the output (B, n, D) for all positions of x (B, n, D), in both directions."""
    real = torch.ones(x.shape[:2], dtype=torch.bool)
    return layer(x, AttentionMask(Position(), len(x), real), None)[0]


class Decoding:
    """A causal attention layer that reads one piece after the other."""

    def __init__(self, layer: SelfAttention) -> None:
        self.layer, self.at = layer, 0
        self.shared: Tree = None
        self.past: Tree = None

    def read(self, x: Tensor) -> Tensor:
        """Return the output (B, T, D) for new positions x (B, T, D)."""
        rows, new = x.shape[:2]
        prepared, self.shared = self.layer.kernel.prepare(self.shared, rows, rows, new, x)
        mask = AttentionMask(Position(), rows, at=self.at, prepared=prepared)
        out, self.past = self.layer(x, mask, self.past)
        self.at += new
        return out
