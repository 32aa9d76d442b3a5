"""Residual branches: x + f(x), and where the norm stands. The kinds of the slot `norm_position`.

B rows, T length, D width.
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
    """The contract: `x = residual.leave(x, f(residual.enter(x, real)), real)`.

    real: (B, T), True for what is not padding; None: all is. Only norms with statistics need it.
    """

    def __init__(self, norm: Norm, dropout: float) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = Dropout(dropout)

    @abstractmethod
    def enter(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """What the branch reads."""

    @abstractmethod
    def leave(self, x: Tensor, branch: Tensor, real: Tensor | None = None) -> Tensor:
        """The sum of the stream and the branch."""

    def init_branch(self, branch: nn.Module) -> None:
        """Called once when the branch is built: for kinds that scale its first weights."""

    def fused(self) -> tuple[bool, FusedNorm] | None:
        """Whether the norm comes first, and the norm, if the fused step knows both."""
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
    """What the options of all residual branches can do."""

    exports: ClassVar[frozenset[str]] = frozenset()
    kind: str

    def build(self, norm: NormOptions, width: int, dropout: float, layers: int) -> Residual:
        """A branch of a stack of so many layers, whose vectors are of this width."""
        raise NotImplementedError

    def final(self, norm: NormOptions, width: int) -> Norm:
        """The norm after the last layer: none, unless norms stand before the branches."""
        return NoNorm()


class Pre(ResidualOptions):
    """The norm before each branch, and one after the last layer: trains without warm-up."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    kind: Literal["pre"] = "pre"

    def build(self, norm: NormOptions, width: int, dropout: float, layers: int) -> Residual:
        return PreNorm(norm.build(width), dropout)

    def final(self, norm: NormOptions, width: int) -> Norm:
        return norm.build(width)


class Post(ResidualOptions):
    """The norm after each sum, as in the first Transformer."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    kind: Literal["post"] = "post"

    def build(self, norm: NormOptions, width: int, dropout: float, layers: int) -> Residual:
        return PostNorm(norm.build(width), dropout)


NormPosition = Annotated[Pre | Post, Field(discriminator="kind")]
