"""Linear attention: a feature map instead of the exponential, so sums can be rearranged."""

from typing import ClassVar, Literal

import torch.nn.functional as F
from torch import Tensor

from regard.nn.kernels.features import FeatureAttention
from regard.nn.kernels.kernel import Kernel, KernelOptions, Shape, Supports


class LinearAttention(FeatureAttention):
    """phi(q) (phi(k)^T v) / phi(q) phi(k)^T 1, phi(x) = elu(x) + 1 (Katharopoulos et al. 2020).

    Costs n * K^2. A causal model with it is a recurrent network.
    """

    def query_features(self, q: Tensor) -> Tensor:
        return F.elu(q) + 1

    def key_features(self, k: Tensor) -> Tensor:
        return F.elu(k) + 1


class Linear(KernelOptions):
    """Products of feature maps instead of softmax. Linear; decoding needs constant memory."""

    supports: ClassVar[Supports] = Supports(bias=False, input_bias=False, rotary=False)
    kind: Literal["linear"] = "linear"

    def build(self, shape: Shape) -> Kernel:
        return LinearAttention(shape.causal)
