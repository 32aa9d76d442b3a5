"""Weight initialization.

Each class except `Default` initializes the matrices of linear, convolutional and recurrent layers.
Gates, queries, keys and values are separate matrices. The biases of linear and convolutional layers
are set to 0. Embeddings, norms and gate biases keep the defaults of the model. A matrix has n
inputs and m outputs.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.core.options import Options
from regard.nn.attention import CrossAttention, SelfAttention
from regard.nn.feedforward import FeedForward
from regard.nn.layers import TransformerLayer
from regard.nn.residual import Residual

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


@dataclass(frozen=True)
class InitTarget:
    """A weight matrix and its position in the model."""

    weight: Tensor  # (m, n), a view
    layer: int  # index of its layer in a Transformer, from 1; 0 elsewhere
    branches: int  # number of residual branches in that Transformer; 0 elsewhere
    is_last: bool  # whether it is the last matrix of a residual branch


def matrices(model: nn.Module) -> Iterator[InitTarget]:
    """Yield the matrices to initialize."""
    positions = _positions(model)
    blocks, last = _blocks(model), _last(model)
    for part in model.modules():
        layer, branches = positions.get(id(part), (0, 0))
        found: list[Tensor] = []
        if isinstance(part, nn.Linear):
            found = list(part.weight.data.chunk(blocks.get(id(part), 1)))
        elif isinstance(part, CONVOLUTIONS):
            found = [part.weight.data.flatten(1)]
        elif isinstance(part, nn.RNNBase):
            weights = [weight.data for weight in part.parameters() if weight.dim() == 2]
            found = [gate for weight in weights for gate in weight.split(part.hidden_size)]
        for weight in found:
            yield InitTarget(weight, layer, branches, id(part) in last)


def _positions(model: nn.Module) -> dict[int, tuple[int, int]]:
    """Return the layer index and the number of residual branches of its stack, by module id."""
    positions: dict[int, tuple[int, int]] = {}
    for stack in model.modules():
        layers = getattr(stack, "layers", None)
        if isinstance(layers, nn.ModuleList):
            branches = sum(isinstance(part, Residual) for part in layers.modules())
            for number, layer in enumerate(layers, 1):
                inside = layer.modules() if branches else ()
                positions |= {id(part): (number, branches) for part in inside}
    return positions


def _blocks(model: nn.Module) -> dict[int, int]:
    """Return how many matrices the input projection of each attention combines, by module id."""
    attention = (SelfAttention, CrossAttention)
    found = [part for part in model.modules() if isinstance(part, attention)]
    return {id(part.project): part.project.out_features // part.join.in_features for part in found}


def _last(model: nn.Module) -> set[int]:
    """Return the ids of the linear layers that end a residual branch."""
    attention = (SelfAttention, CrossAttention)
    ends = [part.join for part in model.modules() if isinstance(part, attention)]
    ends += [part.narrow for part in model.modules() if isinstance(part, FeedForward)]
    return {id(part) for part in ends}


class Default(Options):
    """Layer defaults: Glorot for attention, orthogonal for recurrence, otherwise torch's."""

    kind: Literal["default"] = "default"

    def apply(self, model: nn.Module) -> None:
        """Do nothing: the model is built with these defaults."""


class RandomInit(Options):
    """Base class of initializations that apply one rule to all matrices."""

    needs_layers: ClassVar[bool] = False  # whether it requires a Transformer
    kind: str

    def init_matrix(self, matrix: InitTarget) -> None:
        """Initialize a matrix in place."""
        raise NotImplementedError

    @torch.no_grad()
    def apply(self, model: nn.Module) -> None:
        """Initialize the matrices of a model from torch's generator, and set biases to 0."""
        found = list(matrices(model))
        if not any(matrix.branches or not self.needs_layers for matrix in found):
            missing = "Transformer layers" if found else "matrices"
            raise UserError(
                f"training.init.kind={self.kind}: this model has no {missing}",
                help="use default" + (" or xavier_uniform" if found else ""),
            )
        for matrix in found:
            self.init_matrix(matrix)
        for part in model.modules():
            if isinstance(part, (nn.Linear, *CONVOLUTIONS)) and part.bias is not None:
                nn.init.zeros_(part.bias)
            elif isinstance(part, TransformerLayer):
                part.init_branches()


class Scaled(RandomInit):
    """Base class of initializations with a gain."""

    gain: float = Field(1.0, gt=0, description="multiplies the standard deviation")


class XavierUniform(Scaled):
    """Variance 2 / (n + m), uniform (Glorot and Bengio 2010, eq. 16)."""

    kind: Literal["xavier_uniform"] = "xavier_uniform"

    def init_matrix(self, matrix: InitTarget) -> None:
        nn.init.xavier_uniform_(matrix.weight, self.gain)


class XavierNormal(Scaled):
    """Variance 2 / (n + m), normal (Glorot and Bengio 2010, eq. 12)."""

    kind: Literal["xavier_normal"] = "xavier_normal"

    def init_matrix(self, matrix: InitTarget) -> None:
        nn.init.xavier_normal_(matrix.weight, self.gain)


class KaimingUniform(RandomInit):
    """Variance 2 / n, uniform: for ReLU (He et al. 2015, eq. 10)."""

    kind: Literal["kaiming_uniform"] = "kaiming_uniform"

    def init_matrix(self, matrix: InitTarget) -> None:
        nn.init.kaiming_uniform_(matrix.weight, nonlinearity="relu")


class KaimingNormal(RandomInit):
    """Variance 2 / n, normal: for ReLU (He et al. 2015, eq. 10)."""

    kind: Literal["kaiming_normal"] = "kaiming_normal"

    def init_matrix(self, matrix: InitTarget) -> None:
        nn.init.kaiming_normal_(matrix.weight, nonlinearity="relu")


class Lecun(RandomInit):
    """Variance 1 / n, normal (LeCun et al. 1998, 4.6)."""

    kind: Literal["lecun"] = "lecun"

    def init_matrix(self, matrix: InitTarget) -> None:
        nn.init.kaiming_normal_(matrix.weight, nonlinearity="linear")


class Orthogonal(Scaled):
    """Orthogonal rows or columns, whichever are fewer (Saxe et al. 2014)."""

    kind: Literal["orthogonal"] = "orthogonal"

    def init_matrix(self, matrix: InitTarget) -> None:
        nn.init.orthogonal_(matrix.weight, self.gain)


class Normal(RandomInit):
    """Normal, with the same standard deviation for all matrices."""

    kind: Literal["normal"] = "normal"
    std: float = Field(0.02, gt=0, description="standard deviation")

    def init_matrix(self, matrix: InitTarget) -> None:
        nn.init.normal_(matrix.weight, std=self.std)


class TruncatedNormal(Normal):
    """Normal, truncated at two standard deviations (as Devlin et al. 2019)."""

    kind: Literal["truncated_normal"] = "truncated_normal"  # type: ignore[assignment]

    def init_matrix(self, matrix: InitTarget) -> None:
        nn.init.trunc_normal_(matrix.weight, std=self.std, a=-2 * self.std, b=2 * self.std)


class Gpt2(Normal):
    """Normal, with the last matrix of each residual branch scaled down (Radford et al. 2019, 2.3).

    The last matrix of each of N branches is divided by sqrt(N), so that the sum of all branches
    starts as large as a single branch.
    """

    kind: Literal["gpt2"] = "gpt2"  # type: ignore[assignment]

    def init_matrix(self, matrix: InitTarget) -> None:
        scale = math.sqrt(matrix.branches) if matrix.is_last and matrix.branches else 1.0
        nn.init.normal_(matrix.weight, std=self.std / scale)


class Small(RandomInit):
    """Variance 2 / (5 d), d the smaller of n and m (Nguyen and Salazar 2019, 2.2)."""

    kind: Literal["small"] = "small"

    def init_matrix(self, matrix: InitTarget) -> None:
        nn.init.normal_(matrix.weight, std=math.sqrt(0.4 / min(matrix.weight.shape)))


class Depth(RandomInit):
    """xavier_uniform, divided by sqrt(l) in layer l of a Transformer (Zhang et al. 2019, 4.1)."""

    needs_layers: ClassVar[bool] = True
    kind: Literal["depth"] = "depth"

    def init_matrix(self, matrix: InitTarget) -> None:
        nn.init.xavier_uniform_(matrix.weight, 1 / math.sqrt(max(1, matrix.layer)))


Init = Annotated[
    Default
    | XavierUniform
    | XavierNormal
    | KaimingUniform
    | KaimingNormal
    | Lecun
    | Orthogonal
    | Normal
    | TruncatedNormal
    | Gpt2
    | Small
    | Depth,
    Field(discriminator="kind"),
]
