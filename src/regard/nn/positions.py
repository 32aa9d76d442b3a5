"""Positions: how a Transformer knows the order of its symbols.

T length, D width. A kind has hooks, each the identity unless overridden.
"""

import math
from functools import lru_cache
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.options import Options


class Position(nn.Module):
    """No positions: order is invisible but for the causal mask."""

    def embed(self, x: Tensor, at: int) -> Tensor:
        """x (B, T, D), whose first symbol stands at place `at`, with its positions added."""
        return x


class SinusoidalPosition(Position):
    """sin and cos of the place at wavelengths from 2 pi to 20000 pi (Vaswani et al. 2017, 3.5).

    PE(t, 2i) = sin(t / 10000^(2i/D)),  PE(t, 2i+1) = cos(t / 10000^(2i/D))
    """

    def embed(self, x: Tensor, at: int) -> Tensor:
        T, D = x.shape[1:]
        size = max(256, 1 << (at + T - 1).bit_length())
        return x + sinusoids(size, D)[at : at + T].to(x.device, x.dtype)


@lru_cache(maxsize=16)
def sinusoids(length: int, width: int) -> Tensor:
    """The table (length, width) of sinusoidal positions."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    angles = torch.arange(length)[:, None] * rates  # (length, ceil(width / 2))
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :width]


class Sinusoidal(Options):
    """Fixed sines and cosines; any length."""

    kind: Literal["sinusoidal"] = "sinusoidal"

    def build(self) -> Position:
        return SinusoidalPosition()


class NoPositions(Options):
    """Nothing: for inputs without order."""

    kind: Literal["none"] = "none"

    def build(self) -> Position:
        return Position()


Positions = Annotated[Sinusoidal | NoPositions, Field(discriminator="kind")]
