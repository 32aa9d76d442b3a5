"""The output layer over a vocabulary.

R rows, D width, V vocabulary.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.machine import is_intel
from regard.nn.int8 import Int8Linear, Weights

LARGE = 1 << 18  # minimum number of weights for which packed weights are faster


class OutputLayer(nn.Module):
    """A linear layer that computes logits. It may be tied to an embedding (Press and Wolf 2017)."""

    def __init__(self, weight: nn.Parameter, bias: bool = False) -> None:
        super().__init__()
        self.weight = weight
        self.bias = nn.Parameter(weight.new_zeros(len(weight))) if bias else None

    def forward(self, h: Tensor) -> Tensor:
        """Return the logits (..., V) for vectors (..., D)."""
        return F.linear(h, self.weight, self.bias)

    def int8(self, weights: Weights) -> Int8Linear:
        """Return the same layer with int8 weights."""
        bias = None if self.bias is None else weights.tensor(self.bias)
        return Int8Linear(weights.matrix(self.weight), bias)

    def fast(self) -> Callable[[Tensor], Tensor]:
        """Return a function that maps vectors (R, D) to logits (R, V).

        Large matrices are stored in another order: transposed for MKL on Intel CPUs, packed for
        oneDNN on others, if available. Either is up to twice as fast.
        """
        if self.weight.device.type != "cpu":
            return self
        weight, bias = self.weight.detach(), None if self.bias is None else self.bias.detach()
        if weight.numel() < LARGE:
            return lambda x: F.linear(x, weight, bias)
        if is_intel() and torch.backends.mkl.is_available():
            columns = weight.t().contiguous().t()  # (V, D) in memory of (D, V)
            return lambda x: F.linear(x, columns, bias)
        probe = torch.linspace(-1, 1, 3 * weight.shape[1], dtype=weight.dtype).view(3, -1)
        with torch.no_grad():
            try:
                packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous())
                multiply = torch.ops.mkldnn._linear_pointwise.default
                found = multiply(probe, packed, bias, "none", [], "")
                alike = torch.allclose(found, self(probe), rtol=1e-4, atol=1e-4)
            except (AttributeError, RuntimeError):
                return self
        return (lambda x: multiply(x, packed, bias, "none", [], "")) if alike else self
