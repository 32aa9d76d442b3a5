"""Positions: how a Transformer knows the order of its symbols.

T length, D width. A kind has hooks, each the identity unless overridden.
"""

import math
from functools import lru_cache
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.core.options import Options

Layout = Literal["interleaved", "halves"]


class Position(nn.Module):
    """No positions: order is invisible but for the causal mask. length: places, None: any."""

    length: int | None = None

    def embed(self, x: Tensor, at: int) -> Tensor:
        """x (B, T, D), whose first symbol stands at place `at`, with its positions added."""
        return x


class SinusoidalPosition(Position):
    """sin and cos of the place at wavelengths from 2 pi to 20000 pi (Vaswani et al. 2017, 3.5).

    PE(t, 2i) = sin(t / 10000^(2i/D)),  PE(t, 2i+1) = cos(t / 10000^(2i/D))
    In halves, as Marian has them: first all the sines, then all the cosines.
    """

    def __init__(self, layout: Layout = "interleaved") -> None:
        super().__init__()
        self.layout: Layout = layout

    def embed(self, x: Tensor, at: int) -> Tensor:
        T, D = x.shape[1:]
        size = max(256, 1 << (at + T - 1).bit_length())
        return x + sinusoids(size, D, self.layout)[at : at + T].to(x.device, x.dtype)


@lru_cache(maxsize=16)
def sinusoids(length: int, width: int, layout: Layout = "interleaved") -> Tensor:
    """The table (length, width) of sinusoidal positions."""
    steps = torch.arange(0, width, 2, dtype=torch.float64)
    angles = torch.arange(length)[:, None] * torch.exp(steps * (-math.log(10000.0) / width))
    both = [angles.sin().float(), angles.cos().float()]  # (length, ceil(width / 2)) each
    if layout == "halves":
        return torch.cat(both, -1)[:, :width]
    return torch.stack(both, -1).flatten(1)[:, :width]


class LearnedPosition(Position):
    """A trained vector for each of `length` places (Gehring et al. 2017, 3.1)."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.length = length
        self.weight = nn.Parameter(torch.randn(length, width) * width**-0.5)

    def embed(self, x: Tensor, at: int) -> Tensor:
        T = x.shape[1]
        if at + T > len(self.weight):
            raise too_long(at + T, len(self.weight), "positions")
        return x + self.weight[at : at + T].to(x.dtype)


def too_long(length: int, limit: int, section: str) -> UserError:
    """The refusal of a sequence for which there are not enough learned places."""
    return UserError(
        f"a sequence of {length:,} symbols (its end included), but {section}.length={limit} is "
        f"the most that this model has learned places for; shorten the text, or train with "
        f"{section}.length={length} or {section}.kind=sinusoidal"
    )


class Sinusoidal(Options):
    """Fixed sines and cosines; any length."""

    kind: Literal["sinusoidal"] = "sinusoidal"
    layout: Layout = Field("interleaved", description="halves: all sines, then all cosines")

    def build(self, width: int) -> Position:
        return SinusoidalPosition(self.layout)


class Learned(Options):
    """A trained vector for each place; nothing may be longer."""

    kind: Literal["learned"] = "learned"
    length: int = Field(512, gt=0, description="places: symbols of the longest sequence")

    def build(self, width: int) -> Position:
        return LearnedPosition(self.length, width)


class NoPositions(Options):
    """Nothing: for inputs without order."""

    kind: Literal["none"] = "none"

    def build(self, width: int) -> Position:
        return Position()


Positions = Annotated[Sinusoidal | Learned | NoPositions, Field(discriminator="kind")]
