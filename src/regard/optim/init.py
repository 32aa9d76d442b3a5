"""Initializations: what the weights are before the first step.

A kind draws the matrices of linear, convolutional and recurrent layers anew, each gate, query,
key and value as a matrix of its own, and sets the biases of linear and convolutional layers to 0.
Embeddings, norms and the biases of gates stay as the model made them. n is the inputs of a matrix
and m its outputs.
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
from regard.nn.residual import Residual

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


@dataclass(frozen=True)
class InitTarget:
    """A matrix of a model, and where it stands."""

    weight: Tensor  # (m, n), a view
    layer: int  # of its Transformer, from 1; 0 outside of one
    branches: int  # residual branches of its Transformer; 0 outside of one
    last: bool  # whether it is the last of a residual branch


def matrices(model: nn.Module) -> Iterator[InitTarget]:
    """The matrices that an initialization draws."""
    places = _places(model)
    blocks, last = _blocks(model), _last(model)
    for part in model.modules():
        layer, branches = places.get(id(part), (0, 0))
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


def _places(model: nn.Module) -> dict[int, tuple[int, int]]:
    """By the id of a part of a Transformer: the number of its layer, and all residual branches."""
    places: dict[int, tuple[int, int]] = {}
    for stack in model.modules():
        layers = getattr(stack, "layers", None)
        if isinstance(layers, nn.ModuleList):
            branches = sum(isinstance(part, Residual) for part in layers.modules())
            for number, layer in enumerate(layers, 1):
                inside = layer.modules() if branches else ()
                places |= {id(part): (number, branches) for part in inside}
    return places


def _blocks(model: nn.Module) -> dict[int, int]:
    """By the id of a linear layer: how many matrices it holds, where it is several."""
    attention = (SelfAttention, CrossAttention)
    found = [part for part in model.modules() if isinstance(part, attention)]
    return {id(part.project): part.project.out_features // part.join.in_features for part in found}


def _last(model: nn.Module) -> set[int]:
    """The ids of the linear layers that end a residual branch."""
    attention = (SelfAttention, CrossAttention)
    ends = [part.join for part in model.modules() if isinstance(part, attention)]
    ends += [part.narrow for part in model.modules() if isinstance(part, FeedForward)]
    return {id(part) for part in ends}


class Default(Options):
    """As each layer has it: Glorot for attention, orthogonal for recurrence, torch's elsewhere."""

    kind: Literal["default"] = "default"

    def apply(self, model: nn.Module) -> None:
        """Nothing: the model is built so."""


class RandomInit(Options):
    """A kind that draws all matrices by one rule."""

    layered: ClassVar[bool] = False  # whether it is only for Transformers
    kind: str

    def draw(self, matrix: InitTarget) -> None:
        """Fills a matrix."""
        raise NotImplementedError

    @torch.no_grad()
    def apply(self, model: nn.Module) -> None:
        """Draws the matrices of a model, in their order, from torch's generator."""
        found = list(matrices(model))
        if not any(matrix.branches or not self.layered for matrix in found):
            lacking = "Transformer layers" if found else "matrices to draw"
            raise UserError(
                f"training.init.kind={self.kind}: this model has no {lacking}; choose default"
                + (" or xavier_uniform" if found else "")
            )
        for matrix in found:
            self.draw(matrix)
        for part in model.modules():
            if isinstance(part, (nn.Linear, *CONVOLUTIONS)) and part.bias is not None:
                nn.init.zeros_(part.bias)


class Scaled(RandomInit):
    """A kind with a gain."""

    gain: float = Field(1.0, gt=0, description="what the deviation is multiplied by")


class XavierUniform(Scaled):
    """Variance 2 / (n + m), uniform (Glorot and Bengio 2010, eq. 16)."""

    kind: Literal["xavier_uniform"] = "xavier_uniform"

    def draw(self, matrix: InitTarget) -> None:
        nn.init.xavier_uniform_(matrix.weight, self.gain)


class XavierNormal(Scaled):
    """Variance 2 / (n + m), normal (Glorot and Bengio 2010, eq. 12)."""

    kind: Literal["xavier_normal"] = "xavier_normal"

    def draw(self, matrix: InitTarget) -> None:
        nn.init.xavier_normal_(matrix.weight, self.gain)


class KaimingUniform(RandomInit):
    """Variance 2 / n, uniform: for ReLU (He et al. 2015, eq. 10)."""

    kind: Literal["kaiming_uniform"] = "kaiming_uniform"

    def draw(self, matrix: InitTarget) -> None:
        nn.init.kaiming_uniform_(matrix.weight, nonlinearity="relu")


class KaimingNormal(RandomInit):
    """Variance 2 / n, normal: for ReLU (He et al. 2015, eq. 10)."""

    kind: Literal["kaiming_normal"] = "kaiming_normal"

    def draw(self, matrix: InitTarget) -> None:
        nn.init.kaiming_normal_(matrix.weight, nonlinearity="relu")


class Lecun(RandomInit):
    """Variance 1 / n, normal (LeCun et al. 1998, 4.6)."""

    kind: Literal["lecun"] = "lecun"

    def draw(self, matrix: InitTarget) -> None:
        nn.init.kaiming_normal_(matrix.weight, nonlinearity="linear")


class Orthogonal(Scaled):
    """Orthogonal rows or columns, whichever are fewer (Saxe et al. 2014)."""

    kind: Literal["orthogonal"] = "orthogonal"

    def draw(self, matrix: InitTarget) -> None:
        nn.init.orthogonal_(matrix.weight, self.gain)


class Normal(RandomInit):
    """Normal, the same deviation for all."""

    kind: Literal["normal"] = "normal"
    std: float = Field(0.02, gt=0, description="standard deviation")

    def draw(self, matrix: InitTarget) -> None:
        nn.init.normal_(matrix.weight, std=self.std)


class TruncatedNormal(Normal):
    """Normal, drawn again beyond two deviations (as Devlin et al. 2019)."""

    kind: Literal["truncated_normal"] = "truncated_normal"  # type: ignore[assignment]

    def draw(self, matrix: InitTarget) -> None:
        nn.init.trunc_normal_(matrix.weight, std=self.std, a=-2 * self.std, b=2 * self.std)


class Gpt2(Normal):
    """Normal; the last matrix of each of N residual branches / sqrt(N) (Radford et al. 2019, 2.3).

    So the sum of all branches begins as large as one.
    """

    kind: Literal["gpt2"] = "gpt2"  # type: ignore[assignment]

    def draw(self, matrix: InitTarget) -> None:
        scale = math.sqrt(matrix.branches) if matrix.last and matrix.branches else 1.0
        nn.init.normal_(matrix.weight, std=self.std / scale)


class Small(RandomInit):
    """Variance 2 / (5 d), d the smaller of n and m (Nguyen and Salazar 2019, 2.2)."""

    kind: Literal["small"] = "small"

    def draw(self, matrix: InitTarget) -> None:
        nn.init.normal_(matrix.weight, std=math.sqrt(0.4 / min(matrix.weight.shape)))


class Depth(RandomInit):
    """xavier_uniform, divided by sqrt(l) in layer l of a Transformer (Zhang et al. 2019, 4.1)."""

    layered: ClassVar[bool] = True
    kind: Literal["depth"] = "depth"

    def draw(self, matrix: InitTarget) -> None:
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
