"""Attention with linear biases. Shapes: B batch size, T queries, S keys, H heads."""

from typing import ClassVar, Literal

from torch import Tensor

from regard.nn.positions.position import Position, PositionOptions, differences


class AlibiPosition(Position):
    """Scores that fall linearly with the distance, per head with another slope (Press et al. 2022).

    Nothing is learned. In encoders the bias is symmetric: only the distance counts.
    """

    biases: ClassVar[bool] = True

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.slopes = slopes(heads)

    def bias(self, q: Tensor, at_q: Tensor, at_k: Tensor) -> Tensor:
        """Return -slope |j - i|, (B|1, H, T, S)."""
        distance = differences(at_q, at_k).abs()[:, None]  # (B|1, 1, T, S)
        return distance * -q.new_tensor(self.slopes)[:, None, None]


def slopes(heads: int) -> list[float]:
    """Return the slope of each head, as the code of Press et al. does.

    For n = 2^k heads: 2^(-8/n), 2^(-16/n), ..., 2^-8. Otherwise those of the next smaller power n,
    then every second slope of 2n.
    """
    power = 1 << (heads.bit_length() - 1)
    found = [2.0 ** (-8 * head / power) for head in range(1, power + 1)]
    between = [2.0 ** (-4 * head / power) for head in range(1, 2 * power, 2)]
    return found + between[: heads - power]


class Alibi(PositionOptions):
    """Scores fall linearly with the distance; nothing is learned; any length."""

    biases: ClassVar[bool] = True
    kind: Literal["alibi"] = "alibi"

    def build(self, width: int, heads: int, causal: bool = False) -> Position:
        return AlibiPosition(heads)
