"""The positions of T5: a learned number per head and bucket of distances.

Shapes: B batch size, T queries, S keys, H heads.
"""

import math
from typing import ClassVar, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.nn.positions.position import Position, PositionOptions, differences


class T5Position(Position):
    """A learned bias of scores per head and bucket of distances (Raffel et al. 2020, 2.1).

    Half of the buckets hold one distance each. The others grow logarithmically up to `distance`;
    the last one holds all larger distances. If not causal, keys before and after the query have
    separate buckets. All layers share the table.
    """

    biases: ClassVar[bool] = True

    def __init__(self, buckets: int, distance: int, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.weight = nn.Parameter(torch.randn(buckets, heads) * width**-0.5)
        self.starts = bucket_starts(buckets if causal else buckets // 2, distance)

    def bias(self, q: Tensor, at_q: Tensor, at_k: Tensor) -> Tensor:
        """Return the bias (B|1, H, T, S)."""
        found = self.weight[self.buckets(differences(at_q, at_k))]  # (B|1, T, S, H)
        return found.permute(0, 3, 1, 2).to(q.dtype)

    def buckets(self, difference: Tensor) -> Tensor:
        """Return the bucket of each difference: the position of the key minus that of the query."""
        starts = torch.tensor(self.starts, device=difference.device)
        distance = -difference.clamp(max=0) if self.causal else difference.abs()
        bucket = torch.bucketize(distance, starts, right=True)
        return bucket if self.causal else bucket + (difference > 0) * (len(starts) + 1)


def bucket_starts(buckets: int, distance: int) -> list[int]:
    """Return the smallest distance of each bucket except the first."""
    exact = buckets // 2  # these buckets hold one distance each
    ratio = math.log(distance / exact)
    wide = [
        exact * math.exp(ratio * (bucket - exact) / (buckets - exact))
        for bucket in range(exact, buckets)
    ]
    return [*range(1, exact), *(math.ceil(start - 1e-9) for start in wide)]


class T5(PositionOptions):
    """A learned bias per head and bucket of distances; any length."""

    biases: ClassVar[bool] = True
    kind: Literal["t5"] = "t5"
    buckets: int = Field(32, ge=4, multiple_of=2, description="number of buckets of distances")
    distance: int = Field(128, gt=1, description="larger distances share the last bucket")

    @model_validator(mode="after")
    def _check_distance(self) -> "T5":
        if self.distance <= self.buckets // 2:
            raise ValueError(
                f"positions t5 with {self.buckets} buckets need a distance > {self.buckets // 2}, "
                f"found {self.distance}; use distance {4 * self.buckets}"
            )
        return self

    def build(self, width: int, heads: int, causal: bool = False) -> Position:
        return T5Position(self.buckets, self.distance, width, heads, causal)
