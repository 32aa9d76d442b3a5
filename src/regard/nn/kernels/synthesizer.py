"""Synthesizer attention: weights without products of queries and keys.

Shapes: R rows, H heads, T new positions, S positions so far, K head width.
"""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.data.tensors.tree import Tree
from regard.nn.kernels.kernel import (
    AttentionMask,
    Kernel,
    KernelOptions,
    Shape,
    Supports,
    check_length,
    masked_softmax,
)

Variant = Literal["dense", "random"]


class SynthesizerAttention(Kernel):
    """Softmax of scores that a position computes alone, or that are learned (Tay et al. 2021).

    dense: scores W relu(q) + b for `length` positions. random: a learned matrix of scores, the same
    for all inputs. Costs n^2.
    """

    def __init__(self, variant: Variant, length: int, shape: Shape) -> None:
        super().__init__()
        heads, width = shape.heads, shape.width // shape.heads
        self.length, self.causal = length, shape.causal
        self.reads = ("query", "value") if variant == "dense" else ("value",)
        self.weigh = nn.Parameter(torch.randn(heads, width, length) * width**-0.5)
        if variant == "random":
            self.weigh = nn.Parameter(torch.randn(heads, length, length))
        self.bias = nn.Parameter(torch.zeros(heads, 1, length)) if variant == "dense" else None

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tree]:
        """Return the output (R, H, T, K), and all values so far (R, H, S, K)."""
        weights, values = self.weights(q, k, v, mask, past)
        return weights @ values, values if self.causal else None

    def weights(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tensor]:
        values = v if past is None else torch.cat([past, v], 2)
        T, S = v.shape[2], values.shape[2]
        check_length("synthesizer", S, self.length)
        if self.bias is None:
            scores = self.weigh[None, :, S - T : S, :S].expand(len(v), -1, -1, -1)
        else:
            scores = (q.relu() @ self.weigh + self.bias)[..., :S]
        visible = None if mask.real is None else mask.real[:, None, None]
        if self.causal:
            visible = torch.ones(T, S, dtype=torch.bool, device=v.device).tril(S - T)
        return masked_softmax(scores, visible), values


class Synthesizer(KernelOptions):
    """Scores from each position alone, or learned once for all inputs. Quadratic."""

    supports: ClassVar[Supports] = Supports(cross=False, bias=False, input_bias=False, rotary=False)
    kind: Literal["synthesizer"] = "synthesizer"
    variant: Variant = Field("dense", description="scores from the position, or a learned matrix")
    length: int = Field(512, gt=0, description="maximum number of positions")

    def build(self, shape: Shape) -> Kernel:
        return SynthesizerAttention(self.variant, self.length, shape)
