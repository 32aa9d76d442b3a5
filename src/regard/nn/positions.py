"""Positional encodings: the choices of the option `positions`.

Shapes: B batch size, T length, S positions attended to, D width, H heads, K head width.
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
    """Base class of positional encodings, and the encoding without positions.

    Without positions, only the causal mask reveals the order. A stack of layers has one encoding,
    with three methods that do nothing unless overridden: `embed`, `rotate` and `bias`.
    rotates, biases: whether `rotate` and `bias` do anything.
    every_layer: whether `embed` is called before each layer, not only before the first.
    adds: whether the encoding only adds a vector per position before the first layer, which the
    fused step (`nn.fused`) supports. Not inherited (see `claim`).
    length: the maximum length. None: unlimited.
    """

    adds: ClassVar[bool] = True
    rotates: ClassVar[bool] = False
    biases: ClassVar[bool] = False
    every_layer: ClassVar[bool] = False
    length: int | None = None

    def embed(self, x: Tensor, at: int, layer: int = 0) -> Tensor:
        """Return x (B, T, D) with positions added. `at` is the position of the first token."""
        return x

    def rotate(self, q: Tensor, k: Tensor, at: int) -> tuple[Tensor, Tensor]:
        """Return queries and keys (B, H, T, K), rotated by their positions, which start at `at`."""
        return q, k

    def bias(self, q: Tensor, at_q: Tensor, at_k: Tensor) -> Tensor | None:
        """Return the bias (B|1, H, T, S) of scores, for positions at_q (T,) and at_k (B|1, S)."""
        return None


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
        size = max(256, 1 << (at + T - 1).bit_length())
        return x + sinusoids(size, D, self.layout)[at : at + T].to(x.device, x.dtype)


@lru_cache(maxsize=16)
def sinusoids(length: int, width: int, layout: SinusoidLayout = "interleaved") -> Tensor:
    """Return the table (length, width) of sinusoidal positions."""
    steps = torch.arange(0, width, 2, dtype=torch.float64)
    angles = torch.arange(length)[:, None] * torch.exp(steps * (-math.log(10000.0) / width))
    both = [angles.sin().float(), angles.cos().float()]  # (length, ceil(width / 2)) each
    if layout == "halves":
        return torch.cat(both, -1)[:, :width]
    return torch.stack(both, -1).flatten(1)[:, :width]


class LearnedPosition(Position):
    """A learned vector for each of `length` positions (Gehring et al. 2017, 3.1)."""

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
    """Return the error for a sequence that has more tokens than there are learned positions."""
    return UserError(
        f"sequence of {length:,} tokens (incl. EOS) exceeds {section}.length={limit} learned "
        "positions",
        help=f"shorten the text, or train with {section}.length={length} or "
        f"{section}.kind=sinusoidal",
    )


class PositionOptions(Options):
    """Base class of position options. rotates, biases: as in the `Position` that they build."""

    exports: ClassVar[frozenset[str]] = frozenset()
    rotates: ClassVar[bool] = False
    biases: ClassVar[bool] = False
    kind: str

    def build(self, width: int, heads: int) -> Position:
        """Return the positional encoding of a stack of layers."""
        raise NotImplementedError


class Sinusoidal(PositionOptions):
    """Fixed sines and cosines; any length."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    kind: Literal["sinusoidal"] = "sinusoidal"
    layout: SinusoidLayout = Field(
        "interleaved",
        description="sines and cosines alternate; halves: all sines, then all cosines",
    )

    def build(self, width: int, heads: int) -> Position:
        return SinusoidalPosition(self.layout)


class Learned(PositionOptions):
    """A learned vector per position, up to a maximum length."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    kind: Literal["learned"] = "learned"
    length: int = Field(512, gt=0, description="number of positions: the maximum sequence length")

    def build(self, width: int, heads: int) -> Position:
        return LearnedPosition(self.length, width)


class NoPositions(PositionOptions):
    """No positions: for inputs without order."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    kind: Literal["none"] = "none"

    def build(self, width: int, heads: int) -> Position:
        return Position()


Positions = Annotated[Sinusoidal | Learned | NoPositions, Field(discriminator="kind")]
