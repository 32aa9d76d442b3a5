"""Residual branches, x + f(x), with pre-norm or post-norm: the choices of the option
`norm_position`.

Shapes: B batch size, T length, D width.
"""

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn

from regard.core.options import Options
from regard.nn.dropout import Dropout
from regard.nn.fast import claim
from regard.nn.norms import FusedNorm, NoNorm, Norm, NormOptions


class Residual(nn.Module, ABC):
    """Base class of residual branches: `x = residual.leave(x, f(residual.enter(x, real)), real)`.

    real: (B, T), True unless padding; None: no padding. Only norms with batch statistics need it.
    """

    def __init__(self, norm: Norm, dropout: float) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = Dropout(dropout)

    @abstractmethod
    def enter(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """Return the input of the branch f."""

    @abstractmethod
    def leave(self, x: Tensor, branch: Tensor, real: Tensor | None = None) -> Tensor:
        """Return the sum of x and the branch output, normalized if post-norm."""

    def init_branch(self, branch: nn.Module) -> None:
        """Scale the initial weights of the branch, if needed. Called once, when it is built."""

    def fused(self) -> tuple[bool, FusedNorm] | None:
        """Return whether this is pre-norm, and the norm; None if the fused step lacks support."""
        return None


class PreNorm(Residual):
    """x + f(norm(x)) (Xiong et al. 2020)."""

    def enter(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        return self.norm(x, real)

    def leave(self, x: Tensor, branch: Tensor, real: Tensor | None = None) -> Tensor:
        return x + self.dropout(branch)

    def fused(self) -> tuple[bool, FusedNorm] | None:
        norm = claim(self.norm, "fused")
        return None if norm is None else (True, norm)


class PostNorm(Residual):
    """norm(x + f(x)) (Vaswani et al. 2017)."""

    def enter(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        return x

    def leave(self, x: Tensor, branch: Tensor, real: Tensor | None = None) -> Tensor:
        return self.norm(x + self.dropout(branch), real)

    def fused(self) -> tuple[bool, FusedNorm] | None:
        norm = claim(self.norm, "fused")
        return None if norm is None else (False, norm)


class ResidualOptions(Options):
    """Base class of residual options."""

    exports: ClassVar[frozenset[str]] = frozenset()
    kind: str

    def build(self, norm: NormOptions, width: int, dropout: float, layers: int) -> Residual:
        """Return a residual branch for a stack with this width and number of layers."""
        raise NotImplementedError

    def final(self, norm: NormOptions, width: int) -> Norm:
        """Return the norm after the last layer: none, except for pre-norm."""
        return NoNorm()


class Pre(ResidualOptions):
    """Pre-norm: norms before each branch and after the last layer. Trains without warm-up."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    kind: Literal["pre"] = "pre"

    def build(self, norm: NormOptions, width: int, dropout: float, layers: int) -> Residual:
        return PreNorm(norm.build(width), dropout)

    def final(self, norm: NormOptions, width: int) -> Norm:
        return norm.build(width)


class Post(ResidualOptions):
    """Post-norm: a norm after each sum, as in the original Transformer."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    kind: Literal["post"] = "post"

    def build(self, norm: NormOptions, width: int, dropout: float, layers: int) -> Residual:
        return PostNorm(norm.build(width), dropout)


NormPosition = Annotated[Pre | Post, Field(discriminator="kind")]
