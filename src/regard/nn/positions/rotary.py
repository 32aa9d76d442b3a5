"""Rotary positions. Shapes: B batch size, T length, H heads, K head width."""

from typing import ClassVar, Literal

import torch
from torch import Tensor

from regard.nn.positions.position import Position, PositionOptions, table_size
from regard.nn.positions.sinusoidal import sinusoids


class RotaryPosition(Position):
    """Queries and keys, rotated by angles that grow with their positions (Su et al. 2021, 3.2).

    Each pair of numbers (2i, 2i+1) is rotated by t / 10000^(2i/K), so that a score depends on
    positions only through their difference. The angles are those of sinusoidal positions.
    """

    rotates: ClassVar[bool] = True

    def rotate(self, q: Tensor, k: Tensor, at: int) -> tuple[Tensor, Tensor]:
        T, K = q.shape[2:]
        table = sinusoids(table_size(at + T), K)[at : at + T].to(q.device)
        sin, cos = table[:, 0::2], table[:, 1::2]  # (T, K / 2)
        return rotated(q, sin, cos), rotated(k, sin, cos)


def rotated(x: Tensor, sin: Tensor, cos: Tensor) -> Tensor:
    """Return x (B, H, T, K) with each pair of numbers rotated by an angle per position."""
    sin, cos = sin.to(x.dtype), cos.to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


class Rotary(PositionOptions):
    """Queries and keys are rotated by their positions; any length."""

    rotates: ClassVar[bool] = True
    kind: Literal["rotary"] = "rotary"

    def problem(self, width: int, heads: int) -> str | None:
        if width // heads % 2 == 0:
            return None
        return f"rotate pairs of numbers, but heads are {width // heads} wide (width / heads)"

    def build(self, width: int, heads: int, causal: bool = False) -> Position:
        return RotaryPosition()
