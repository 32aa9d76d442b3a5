"""Inception blocks (Szegedy et al. 2015). B images, C channels, H height, W width of a map."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.nn.convolution.block import BlockOptions, MapNormKind, build_blocks
from regard.nn.convolution.conv import Conv
from regard.nn.convolution.pool import MapPool
from regard.nn.convolution.sizes import Layer, MapShape, Trace

Branches = tuple[int, int, int, int, int, int]


class InceptionBlock(nn.Module):
    """Parallel branches, whose output channels are concatenated."""

    def __init__(self, branches: list[nn.Sequential]) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        """Return the maps (B, C', H, W)."""
        return torch.cat([branch(x) for branch in self.branches], 1)


class Inception(BlockOptions):
    """Convolutions of 1 x 1, 3 x 3 and 5 x 5 and maximum pooling, side by side.

    The larger ones follow a 1 x 1 convolution that reduces the channels. One follows the pooling.
    """

    kind: Literal["inception"] = "inception"
    width: int | None = Field(
        None, ge=8, description="output channels; None: the sum of the branches, or the encoder's"
    )
    branches: Branches | None = Field(
        None,
        description="channels of 1x1, 3x3 reduce, 3x3, 5x5 reduce, 5x5, pool projection; None: "
        "from width",
    )
    norm: MapNormKind = Field("none", description="batch norm after each convolution")

    @property
    def output(self) -> int | None:
        if self.branches is None:
            return self.width
        one, _, three, _, five, pool = self.branches
        return one + three + five + pool

    def with_width(self, width: int) -> BlockOptions:
        return self if self.branches is not None else super().with_width(width)

    @property
    def channels(self) -> Branches:
        """Return the channels of the convolutions, in the proportions of the paper by default."""
        if self.branches is not None:
            return self.branches
        assert self.width
        one, three, five = self.width // 4, self.width // 2, self.width // 8
        pool = self.width - one - three - five
        return one, three * 3 // 4, three, max(1, five // 2), five, pool

    def _chains(self) -> dict[str, list[Conv | MapPool]]:
        """Return the layers of each branch."""
        one, three_reduce, three, five_reduce, five, pool = (
            {"width": width, "norm": self.norm} for width in self.channels
        )
        return {
            "1x1": [Conv(size=1, **one)],
            "3x3": [Conv(size=1, **three_reduce), Conv(size=3, **three)],
            "5x5": [Conv(size=1, **five_reduce), Conv(size=5, **five)],
            "pool": [MapPool(size=3, stride=1, padding=1), Conv(size=1, **pool)],
        }

    def layers(self, trace: Trace, name: str) -> list[Layer]:
        found: list[Layer] = []
        ends = []
        for branch, chain in self._chains().items():
            at = trace
            for number, part in enumerate(chain, 1):
                label = f"{name} {branch}" + (f" {number}" if len(chain) > 1 else "")
                found += part.layers(at, label)
                at = found[-1].after
            ends.append(at)
        channels = sum(end.shape.channels for end in ends)
        joined = ends[0].join(ends[1:], channels)
        return [*found, Layer(f"{name} join", "channels of all branches", joined)]

    def build(self, shape: MapShape) -> InceptionBlock:
        return InceptionBlock(
            [nn.Sequential(*build_blocks(chain, shape)) for chain in self._chains().values()]
        )
