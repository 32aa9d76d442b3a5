"""Norms: vectors brought to one scale. Each file or class here is a kind of the slot `norm`.

B rows, T length, D width.
"""

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar, Literal, NamedTuple

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regard.core.options import Options


class FusedNorm(NamedTuple):
    """A norm that the fused step knows. bias: of `rms` there is none."""

    kind: Literal["layer", "rms", "none"]
    weight: Tensor | None
    bias: Tensor | None
    eps: float


class Norm(nn.Module, ABC):
    """The contract. needs_batch: whether it counts statistics over rows: then a batch is not cut
    among threads. Its statistics are buffers, so that they are saved with the weights."""

    needs_batch: ClassVar[bool] = False

    @abstractmethod
    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """(B, T, D) to the same; real: (B, T), True for what is not padding; None: all is."""

    def fused(self) -> FusedNorm | None:
        """Its weights, if the fused step computes what it computes; not inherited (`claim`)."""
        return None


class LayerNorm(Norm, nn.LayerNorm):
    """(x - mean) / deviation over each vector (Ba et al. 2016)."""

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def fused(self) -> FusedNorm | None:
        return FusedNorm("layer", self.weight.detach(), self.bias.detach(), self.eps)


class RmsNorm(Norm, nn.RMSNorm):
    """x / root mean square over each vector (Zhang and Sennrich 2019)."""

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def fused(self) -> FusedNorm | None:
        if self.eps is None:
            return None
        return FusedNorm("rms", self.weight.detach(), None, self.eps)


class NoNorm(Norm):
    """The vectors as they are."""

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        return x

    def fused(self) -> FusedNorm:
        return FusedNorm("none", None, None, 0.0)


class NormOptions(Options):
    """What the options of all norms can do."""

    exports: ClassVar[frozenset[str]] = frozenset()
    kind: str

    def build(self, width: int) -> Norm:
        """The norm of vectors of this width."""
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
