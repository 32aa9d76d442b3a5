"""Learned positions. Shapes: B batch size, T length, D width."""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.nn.positions.position import Position, PositionOptions


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
    """Return the error for a sequence that has more tokens than a section has positions for.

    section: the settings of learned positions, or of attention with weights per position.
    """
    is_attention = section.endswith(("attention", "cross"))
    kind = "softmax" if is_attention else "sinusoidal"
    return UserError(
        f"sequence of {length:,} positions (incl. EOS) exceeds {section}.length={limit} "
        f"{'' if is_attention else 'learned '}positions",
        help=f"shorten it, or train with {section}.length={length} or {section}.kind={kind}",
    )


class Learned(PositionOptions):
    """A learned vector per position, up to a maximum length."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    kind: Literal["learned"] = "learned"
    length: int = Field(512, gt=0, description="number of positions: the maximum sequence length")

    def build(self, width: int, heads: int, causal: bool = False) -> Position:
        return LearnedPosition(self.length, width)
