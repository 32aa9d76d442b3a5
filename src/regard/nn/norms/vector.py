"""Norms of each vector alone: layer norm, RMS norm, ScaleNorm. Shapes: B, T, D width."""

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.norms.norm import FusedNorm, Norm, NormOptions


class LayerNorm(Norm, nn.LayerNorm):
    """Layer norm: (x - mean) / standard deviation of each vector (Ba et al. 2016)."""

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def fused(self) -> FusedNorm | None:
        return FusedNorm("layer", self.weight.detach(), self.bias.detach(), self.eps)


class RmsNorm(Norm, nn.RMSNorm):
    """RMS norm: x / root mean square of each vector (Zhang and Sennrich 2019)."""

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def fused(self) -> FusedNorm | None:
        if self.eps is None:
            return None
        return FusedNorm("rms", self.weight.detach(), None, self.eps)


class ScaleNorm(Norm):
    """ScaleNorm: g x / |x| with one learned number g (Nguyen and Salazar 2019, 2.3).

    It is an RMS norm whose weights are all g / sqrt(D). g starts at sqrt(D).
    """

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.width, self.eps = width, eps
        self.gain = nn.Parameter(torch.full((1,), width**0.5))

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        return F.rms_norm(x, (self.width,), self._weight(), self.eps)

    def _weight(self) -> Tensor:
        return (self.gain * self.width**-0.5).expand(self.width)

    def fused(self) -> FusedNorm | None:
        return FusedNorm("rms", self._weight().detach().contiguous(), None, self.eps)


class Layer(NormOptions):
    """Layer norm."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    kind: Literal["layer"] = "layer"

    def build(self, width: int) -> Norm:
        return LayerNorm(width)


class Rms(NormOptions):
    """Root-mean-square norm: no mean, no bias."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    kind: Literal["rms"] = "rms"

    def build(self, width: int) -> Norm:
        return RmsNorm(width, eps=1e-6)


class Scale(NormOptions):
    """ScaleNorm: vectors of one learned length."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx"})
    kind: Literal["scale"] = "scale"

    def build(self, width: int) -> Norm:
        return ScaleNorm(width, eps=1e-6)
