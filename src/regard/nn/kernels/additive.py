"""Additive attention: scores by a small feed-forward network.

Shapes: B sentences, H heads, T queries, S keys, K head width.
"""

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from regard.nn.kernels.dense import DenseAttention
from regard.nn.kernels.kernel import Kernel, KernelOptions, Shape, Supports


class AdditiveAttention(DenseAttention):
    """Softmax of the scores u . tanh(q + k) (Bahdanau et al. 2015, A.1.2). Quadratic."""

    def __init__(self, heads: int, head_width: int, causal: bool) -> None:
        super().__init__(causal)
        self.weigh = nn.Parameter(torch.empty(heads, head_width))
        nn.init.normal_(self.weigh, std=head_width**-0.5)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        mixed = torch.tanh(q.unsqueeze(3) + k.unsqueeze(2))  # (B, H, T, S, K)
        return (mixed @ self.weigh[:, None, :, None]).squeeze(-1)


class AdditiveScores(KernelOptions):
    """Scores by a small feed-forward network instead of a product. Quadratic."""

    supports: ClassVar[Supports] = Supports(rotary=False)
    aligns: ClassVar[bool] = True
    kind: Literal["additive"] = "additive"

    def build(self, shape: Shape) -> Kernel:
        return AdditiveAttention(shape.heads, shape.width // shape.heads, shape.causal)
