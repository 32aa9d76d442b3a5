"""The interface of normalization layers. Shapes: B batch size, T length, D width."""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal, NamedTuple

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

    needs_batch: whether the norm computes statistics over the batch in training. The batch is then
    not split among threads. Statistics are buffers, which are saved with the weights. Such a norm
    has an attribute `momentum`, the weight of a batch in its running statistics.
    """

    needs_batch: ClassVar[bool] = False

    @abstractmethod
    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """Return normalized x (B, T, D). real: (B, T), True unless padding; None: no padding."""

    def fused(self) -> FusedNorm | None:
        """Return the weights for the fused step, or None. Not inherited (see `claim`)."""
        return None


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


class NoNormOptions(NormOptions):
    """No normalization, to see what norms are for."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx"})
    kind: Literal["none"] = "none"

    def build(self, width: int) -> Norm:
        return NoNorm()
