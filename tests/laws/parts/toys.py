"""Positions that only tests have: one for each hook."""

import torch
from torch import Tensor

from regard.nn.positions import Position


class Turning(Position):
    """Each pair of numbers of a query or key is turned by an angle that grows with its position."""

    rotates = True

    def rotate(self, q: Tensor, k: Tensor, at: int) -> tuple[Tensor, Tensor]:
        angles = 0.7 * torch.arange(at, at + q.shape[2])[:, None]
        return _turned(q, angles), _turned(k, angles)


def _turned(x: Tensor, angles: Tensor) -> Tensor:
    one, other = x[..., ::2], x[..., 1::2]
    both = one * angles.cos() - other * angles.sin(), one * angles.sin() + other * angles.cos()
    return torch.stack(both, -1).flatten(-2)


class Slanting(Position):
    """Scores fall with the distance, for each head at another rate."""

    biases = True

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def bias(self, q: Tensor, at_q: Tensor, at_k: Tensor) -> Tensor:
        distance = (at_q[None, :, None] - at_k[:, None]).abs()  # (B|1, T, S)
        slopes = 2.0 ** -torch.arange(self.heads, dtype=q.dtype)
        return -slopes[:, None, None] * distance[:, None]


class Rising(Position):
    """Something is added before every layer."""

    every_layer = True

    def embed(self, x: Tensor, at: int, layer: int = 0) -> Tensor:
        steps = torch.arange(at, at + x.shape[1], dtype=x.dtype)
        return x + 0.1 * (layer + 1) * steps[:, None]
