"""Residual branches, x + f(x), and where their norms are: the choices of the option
`norm_position`.

Shapes: B batch size, T length, D width.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting, DerivedSetting, Options
from regard.nn.dropout import Dropout
from regard.nn.fast import claim
from regard.nn.norms import FusedNorm, NoNorm, Norm, NormOptions


class Residual(nn.Module, ABC):
    """Base class of residual branches: `x = residual.leave(x, f(residual.enter(x, real)), real)`.

    real: (B, T), True unless padding; None: no padding. Only norms with batch statistics need it.
    connected: whether x is added. Without it, the output of the branch replaces x.
    """

    connected: bool = True

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

    def add(self, x: Tensor, branch: Tensor) -> Tensor:
        """Return x plus the branch output with dropout; the latter alone if not connected."""
        branch = self.dropout(branch)
        return x + branch if self.connected else branch

    def init_branch(self, branch: nn.Module) -> None:
        """Scale the initial weights of the branch, if needed. Called after each initialization."""

    def fused(self) -> tuple[bool, FusedNorm] | None:
        """Return whether this is pre-norm, and the norm; None if the fused step lacks support."""
        return None


class PreNorm(Residual):
    """x + f(norm(x)) (Xiong et al. 2020)."""

    def enter(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        return self.norm(x, real)

    def leave(self, x: Tensor, branch: Tensor, real: Tensor | None = None) -> Tensor:
        return self.add(x, branch)

    def fused(self) -> tuple[bool, FusedNorm] | None:
        norm = claim(self.norm, "fused")
        return (True, norm) if norm is not None and self.connected else None


class PostNorm(Residual):
    """norm(x + f(x)) (Vaswani et al. 2017)."""

    def enter(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        return x

    def leave(self, x: Tensor, branch: Tensor, real: Tensor | None = None) -> Tensor:
        return self.norm(self.add(x, branch), real)

    def fused(self) -> tuple[bool, FusedNorm] | None:
        norm = claim(self.norm, "fused")
        return (False, norm) if norm is not None and self.connected else None


class SandwichNorm(Residual):
    """x + norm(f(norm(x))) (Ding et al. 2021, 3.2)."""

    def __init__(self, norm: Norm, after: Norm, dropout: float) -> None:
        super().__init__(norm, dropout)
        self.after = after

    def enter(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        return self.norm(x, real)

    def leave(self, x: Tensor, branch: Tensor, real: Tensor | None = None) -> Tensor:
        return self.add(x, self.after(branch, real))


class DeepNorm(Residual):
    """norm(alpha x + f(x)), with initial weights of f scaled by beta (Wang et al. 2022, 3)."""

    def __init__(self, norm: Norm, dropout: float, alpha: float, beta: float) -> None:
        super().__init__(norm, dropout)
        self.alpha, self.beta = alpha, beta

    def enter(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        return x

    def leave(self, x: Tensor, branch: Tensor, real: Tensor | None = None) -> Tensor:
        return self.norm(self.add(self.alpha * x, branch), real)

    @torch.no_grad()
    def init_branch(self, branch: nn.Module) -> None:
        """Multiply all matrices of the branch but those of queries and keys by beta."""
        for name, weight in branch.named_parameters():
            if name == "project.weight":
                weight[-_value_rows(branch) :].mul_(self.beta)
            elif weight.dim() == 2 and not name.startswith(("query.", "kernel.")):
                weight.mul_(self.beta)


def _value_rows(attention: Any) -> int:
    """Return how many rows of the input projection compute values: the last ones.

    The projection of self-attention also computes queries, if the kernel reads them.
    """
    rows, width = attention.project.out_features, attention.join.in_features
    if hasattr(attention, "query"):  # cross-attention: keys and values
        return int(rows // 2)
    others = len(attention.kernel.reads) - 1
    return int((rows - width) // others if others else rows)


class ResidualOptions(Options):
    """Base class of residual options. connects: whether the residual connection is required."""

    exports: ClassVar[frozenset[str]] = frozenset()
    connects: ClassVar[bool] = False
    kind: str

    def build(
        self, norm: NormOptions, width: int, dropout: float, layers: int, branches: int = 2
    ) -> Residual:
        """Return a residual branch, for a stack with this width and number of layers.

        branches: number of residual branches per layer.
        """
        raise NotImplementedError

    def final(self, norm: NormOptions, width: int) -> Norm:
        """Return the norm after the last layer: none, except for pre-norm."""
        return NoNorm()


class Pre(ResidualOptions):
    """Pre-norm: norms before each branch and after the last layer. Trains without warm-up."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    kind: Literal["pre"] = "pre"

    def build(
        self, norm: NormOptions, width: int, dropout: float, layers: int, branches: int = 2
    ) -> Residual:
        return PreNorm(norm.build(width), dropout)

    def final(self, norm: NormOptions, width: int) -> Norm:
        return norm.build(width)


class Post(ResidualOptions):
    """Post-norm: a norm after each sum, as in the original Transformer."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    kind: Literal["post"] = "post"

    def build(
        self, norm: NormOptions, width: int, dropout: float, layers: int, branches: int = 2
    ) -> Residual:
        return PostNorm(norm.build(width), dropout)


class Sandwich(Pre):
    """Pre-norm with a second norm at the end of each branch."""

    exports: ClassVar[frozenset[str]] = frozenset()
    kind: Literal["sandwich"] = "sandwich"  # type: ignore[assignment]

    def build(
        self, norm: NormOptions, width: int, dropout: float, layers: int, branches: int = 2
    ) -> Residual:
        return SandwichNorm(norm.build(width), norm.build(width), dropout)


class Deepnorm(ResidualOptions):
    """Post-norm for very deep stacks: the residual connection is scaled up, branches down."""

    connects: ClassVar[bool] = True
    kind: Literal["deepnorm"] = "deepnorm"
    decoder_layers: int | None = Field(
        None, ge=0, description="layers of the decoder that reads this encoder; unused in decoders"
    )

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        model = config.model
        if self.decoder_layers is None and model.is_sized:
            decoder = model.sides.get("decoder") if "encoder" in model.sides else None
            layers = getattr(decoder, "layers", None) or 0
            yield DerivedSetting("decoder_layers", layers, "layers of the decoder")

    def build(
        self, norm: NormOptions, width: int, dropout: float, layers: int, branches: int = 2
    ) -> Residual:
        alpha, beta = deepnorm_factors(layers, branches, self.decoder_layers or 0)
        return DeepNorm(norm.build(width), dropout, alpha, beta)


def deepnorm_factors(layers: int, branches: int, decoder_layers: int = 0) -> tuple[float, float]:
    """Return alpha and beta of a stack (Wang et al. 2022, figure 2).

    branches: per layer; 3 in a decoder with cross-attention. decoder_layers: of the decoder that
    reads this encoder; 0: none.
    """
    if decoder_layers and branches == 2:
        depth = (layers**4 * decoder_layers) ** (1 / 16)
        return 0.81 * depth, 0.87 / depth
    return (branches * layers) ** 0.25, (4 * branches * layers) ** -0.25


NormPosition = Annotated[Pre | Post | Sandwich | Deepnorm, Field(discriminator="kind")]
