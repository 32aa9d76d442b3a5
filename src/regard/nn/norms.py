"""Normalization layers: the choices of the option `norm`.

Shapes: B batch size, T length, D width.
"""

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar, Literal, NamedTuple

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regard.core.options import Options


class FusedNorm(NamedTuple):
    """The weights of a norm for the fused step (`nn.fused`). bias: None for `rms` and `none`."""

    kind: Literal["layer", "rms", "none"]
    weight: Tensor | None
    bias: Tensor | None
    eps: float


class Norm(nn.Module, ABC):
    """Base class of norms.

    needs_batch: whether the norm computes statistics over the batch. The batch is then not split
    among threads. Statistics are buffers, which are saved with the weights.
    """

    needs_batch: ClassVar[bool] = False

    @abstractmethod
    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """Return normalized x (B, T, D). real: (B, T), True unless padding; None: no padding."""

    def fused(self) -> FusedNorm | None:
        """Return the weights for the fused step, or None. Not inherited (see `claim`)."""
        return None


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


class NoNorm(Norm):
    """No normalization."""

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        return x

    def fused(self) -> FusedNorm:
        return FusedNorm("none", None, None, 0.0)


class NormOptions(Options):
    """Base class of norm options."""

    exports: ClassVar[frozenset[str]] = frozenset()
    kind: str

    def build(self, width: int) -> Norm:
        """Return the norm for vectors of this width."""
        raise NotImplementedError


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


Norms = Annotated[Layer | Rms, Field(discriminator="kind")]
