"""Sinusoidal positions. Shapes: B batch size, T length, D width."""

import math
from functools import lru_cache
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from regard.nn.positions.position import Position, PositionOptions, table_size

SinusoidLayout = Literal["interleaved", "halves"]


class SinusoidalPosition(Position):
    """Sines and cosines at wavelengths from 2 pi to 20000 pi (Vaswani et al. 2017, 3.5).

    PE(t, 2i) = sin(t / 10000^(2i/D)),  PE(t, 2i+1) = cos(t / 10000^(2i/D))
    With layout halves, as in Marian: first all sines, then all cosines.
    """

    adds: ClassVar[bool] = True

    def __init__(self, layout: SinusoidLayout = "interleaved") -> None:
        super().__init__()
        self.layout: SinusoidLayout = layout

    def embed(self, x: Tensor, at: int, layer: int = 0) -> Tensor:
        T, D = x.shape[1:]
        return x + sinusoids(table_size(at + T), D, self.layout)[at : at + T].to(x.device, x.dtype)


@lru_cache(maxsize=16)
@torch.inference_mode(False)  # the first caller may predict, and the next one train
def sinusoids(length: int, width: int, layout: SinusoidLayout = "interleaved") -> Tensor:
    """Return the table (length, width) of sinusoidal positions."""
    with torch.inference_mode(False):  # it is cached, and training uses it too
        return _sinusoids(length, width, layout)


def _sinusoids(length: int, width: int, layout: SinusoidLayout) -> Tensor:
    steps = torch.arange(0, width, 2, dtype=torch.float64)
    angles = torch.arange(length)[:, None] * torch.exp(steps * (-math.log(10000.0) / width))
    both = [angles.sin().float(), angles.cos().float()]  # (length, ceil(width / 2)) each
    if layout == "halves":
        return torch.cat(both, -1)[:, :width]
    return torch.stack(both, -1).flatten(1)[:, :width]


class Sinusoidal(PositionOptions):
    """Fixed sines and cosines; any length."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    kind: Literal["sinusoidal"] = "sinusoidal"
    layout: SinusoidLayout = Field(
        "interleaved",
        description="sines and cosines alternate; halves: all sines, then all cosines",
    )

    def build(self, width: int, heads: int, causal: bool = False) -> Position:
        return SinusoidalPosition(self.layout)
