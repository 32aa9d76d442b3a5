"""Relative positions: learned vectors of distances.

Shapes: B batch size, T queries, S keys, H heads, K head width.
"""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.nn.positions.position import Position, PositionOptions, differences


class RelativePosition(Position):
    """A learned vector r for each distance, added to the keys (Shaw et al. 2018, eq. 4).

    score(i, j) = q_i . (k_j + r_(j-i)) / sqrt(K), with j - i clipped to +-distance. Heads and
    layers share the vectors. The values have no such vectors: Shaw et al. (table 3) find that they
    add nothing.
    """

    biases: ClassVar[bool] = True

    def __init__(self, distance: int, head_width: int) -> None:
        super().__init__()
        self.distance = distance
        self.weight = nn.Parameter(torch.randn(2 * distance + 1, head_width) * head_width**-0.5)

    def bias(self, q: Tensor, at_q: Tensor, at_k: Tensor) -> Tensor:
        """Return q_i . r_(j-i) / sqrt(K), (B, H, T, S)."""
        distance = differences(at_q, at_k).clamp(-self.distance, self.distance)  # (B|1, T, S)
        products = q @ self.weight.t().to(q.dtype) * q.shape[-1] ** -0.5  # (B, H, T, 2c + 1)
        index = (distance + self.distance)[:, None]
        return products.gather(-1, index.expand(*products.shape[:3], -1))


class Relative(PositionOptions):
    """Learned vectors of the distance between query and key, clipped at a maximum distance."""

    biases: ClassVar[bool] = True
    kind: Literal["relative"] = "relative"
    distance: int = Field(16, gt=0, description="larger distances are treated as this one")

    def build(self, width: int, heads: int, causal: bool = False) -> Position:
        return RelativePosition(self.distance, width // heads)
