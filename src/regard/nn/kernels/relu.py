"""ReLU attention: another normalization than softmax."""

from typing import ClassVar, Literal

from torch import Tensor

from regard.nn.kernels.dense import DenseAttention
from regard.nn.kernels.kernel import Kernel, KernelOptions, Shape


class ReluAttention(DenseAttention):
    """relu(q k^T / sqrt(K)) / n with n visible keys (Wortsman et al. 2023). Quadratic."""

    normalized: ClassVar[bool] = False

    def normalize(self, scores: Tensor, visible: Tensor | None) -> Tensor:
        if visible is None:
            return scores.relu() / scores.shape[-1]
        keys = visible.sum(-1, keepdim=True).clamp(min=1)
        return scores.relu().masked_fill(~visible, 0.0) / keys


class Relu(KernelOptions):
    """Weights by ReLU instead of softmax, divided by the number of keys. Quadratic."""

    kind: Literal["relu"] = "relu"

    def build(self, shape: Shape) -> Kernel:
        return ReluAttention(shape.causal)
