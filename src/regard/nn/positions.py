"""Positions: how a Transformer knows the order of its tokens. The kinds of the slot `positions`.

B rows, T length, S positions attended to, D width, H heads, K head width.
"""

import math
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.core.options import Options

SinusoidLayout = Literal["interleaved", "halves"]


class Position(nn.Module):
    """The contract, and no positions: order is invisible but for the causal mask.

    One for a whole stack, with three hooks, each the identity unless overridden. rotates, biases:
    whether `rotate` and `bias` do anything; every_layer: whether `embed` is asked before each
    layer, not only the first; adds: whether all it does is to add a vector that depends on the
    position alone, before the first layer, which the fused step can do: not inherited (`claim`);
    length: the longest sequence it can take, None: any.
    """

    adds: ClassVar[bool] = True
    rotates: ClassVar[bool] = False
    biases: ClassVar[bool] = False
    every_layer: ClassVar[bool] = False
    length: int | None = None

    def embed(self, x: Tensor, at: int, layer: int = 0) -> Tensor:
        """x (B, T, D), whose first token is at position `at`, with its positions added."""
        return x

    def rotate(self, q: Tensor, k: Tensor, at: int) -> tuple[Tensor, Tensor]:
        """New queries and keys (B, H, T, K) turned by their positions; kept keys stay turned."""
        return q, k

    def bias(self, q: Tensor, at_q: Tensor, at_k: Tensor) -> Tensor | None:
        """(B|1, H, T, S): numbers added to scores; at_q: (T,) and at_k: (B|1, S) positions."""
        return None


class SinusoidalPosition(Position):
    """sin and cos of the place at wavelengths from 2 pi to 20000 pi (Vaswani et al. 2017, 3.5).

    PE(t, 2i) = sin(t / 10000^(2i/D)),  PE(t, 2i+1) = cos(t / 10000^(2i/D))
    In halves, as Marian has them: first all the sines, then all the cosines.
    """

    adds: ClassVar[bool] = True

    def __init__(self, layout: SinusoidLayout = "interleaved") -> None:
        super().__init__()
        self.layout: SinusoidLayout = layout

    def embed(self, x: Tensor, at: int, layer: int = 0) -> Tensor:
        T, D = x.shape[1:]
        size = max(256, 1 << (at + T - 1).bit_length())
        return x + sinusoids(size, D, self.layout)[at : at + T].to(x.device, x.dtype)


@lru_cache(maxsize=16)
def sinusoids(length: int, width: int, layout: SinusoidLayout = "interleaved") -> Tensor:
    """The table (length, width) of sinusoidal positions."""
    steps = torch.arange(0, width, 2, dtype=torch.float64)
    angles = torch.arange(length)[:, None] * torch.exp(steps * (-math.log(10000.0) / width))
    both = [angles.sin().float(), angles.cos().float()]  # (length, ceil(width / 2)) each
    if layout == "halves":
        return torch.cat(both, -1)[:, :width]
    return torch.stack(both, -1).flatten(1)[:, :width]


class LearnedPosition(Position):
    """A trained vector for each of `length` places (Gehring et al. 2017, 3.1)."""

    adds: ClassVar[bool] = True

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.length = length
        self.weight = nn.Parameter(torch.randn(length, width) * width**-0.5)

    def embed(self, x: Tensor, at: int, layer: int = 0) -> Tensor:
        T = x.shape[1]
        if at + T > len(self.weight):
            raise too_long(at + T, len(self.weight), "positions")
        return x + self.weight[at : at + T].to(x.dtype)


def too_long(length: int, limit: int, section: str) -> UserError:
    """The refusal of a sequence for which there are not enough learned places."""
    return UserError(
        f"a sequence of {length:,} tokens (its end included), but {section}.length={limit} is "
        f"the most that this model has learned places for; shorten the text, or train with "
        f"{section}.length={length} or {section}.kind=sinusoidal"
    )


class PositionOptions(Options):
    """What the options of all positions can do. rotates, biases: as of what they build."""

    exports: ClassVar[frozenset[str]] = frozenset()
    rotates: ClassVar[bool] = False
    biases: ClassVar[bool] = False
    kind: str

    def build(self, width: int, heads: int) -> Position:
        """The positions of a stack of layers."""
        raise NotImplementedError


class Sinusoidal(PositionOptions):
    """Fixed sines and cosines; any length."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    kind: Literal["sinusoidal"] = "sinusoidal"
    layout: SinusoidLayout = Field("interleaved", description="halves: all sines, then all cosines")

    def build(self, width: int, heads: int) -> Position:
        return SinusoidalPosition(self.layout)


class Learned(PositionOptions):
    """A trained vector for each place; nothing may be longer."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    kind: Literal["learned"] = "learned"
    length: int = Field(512, gt=0, description="places: tokens of the longest sequence")

    def build(self, width: int, heads: int) -> Position:
        return LearnedPosition(self.length, width)


class NoPositions(PositionOptions):
    """Nothing: for inputs without order."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    kind: Literal["none"] = "none"

    def build(self, width: int, heads: int) -> Position:
        return Position()


Positions = Annotated[Sinusoidal | Learned | NoPositions, Field(discriminator="kind")]
