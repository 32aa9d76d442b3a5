"""Residual blocks (He et al. 2016). B images, C channels, H height, W width of a map."""

from typing import Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regard.nn.convolution.block import BlockOptions, MapNormKind, build_blocks
from regard.nn.convolution.conv import Conv
from regard.nn.convolution.sizes import Layer, MapShape, Trace

EXPANSION = 4  # output channels of a bottleneck per channel inside it


class ResidualBlock(nn.Module):
    """A branch F and a shortcut: relu(F(x) + x), or relu(F(x)) without the shortcut."""

    def __init__(self, branch: nn.Sequential, shortcut: nn.Module | None) -> None:
        super().__init__()
        self.branch, self.shortcut = branch, shortcut

    def forward(self, x: Tensor) -> Tensor:
        """Return the maps (B, C', H', W')."""
        y = self.branch(x)
        return F.relu(y if self.shortcut is None else y + self.shortcut(x))


class ResidualOptions(BlockOptions):
    """Residual blocks. Only the first one has the stride.

    basic: two 3 x 3 convolutions. bottleneck: 1 x 1, 3 x 3 and 1 x 1, with a quarter of the
    channels inside. A shortcut is a 1 x 1 convolution if the shape changes, otherwise the identity.
    """

    kind: Literal["residual"] = "residual"
    width: int | None = Field(None, gt=0, description="output channels; None: width of the encoder")
    stride: int = Field(1, ge=1, description="cells between windows of the first block")
    repeat: int = Field(1, ge=1, description="number of blocks")
    branch: Literal["basic", "bottleneck"] = Field("basic", description="convolutions of a block")
    residual: bool = Field(True, description="add the input; false: plain convolutions")
    norm: MapNormKind = Field("batch", description="batch norm after each convolution")

    @property
    def output(self) -> int | None:
        return self.width

    def _branch(self, stride: int) -> list[Conv]:
        """Return the convolutions of a block. The last one has no activation function."""
        assert self.width
        if self.branch == "basic":
            sizes = [(self.width, 3, stride), (self.width, 3, 1)]
        else:
            inner = max(1, self.width // EXPANSION)
            sizes = [(inner, 1, 1), (inner, 3, stride), (self.width, 1, 1)]
        convs = [Conv(width=w, size=f, stride=s, norm=self.norm) for w, f, s in sizes]
        return [*convs[:-1], convs[-1].model_copy(update={"activation": "none"})]

    def _shortcut(self, inputs: int, stride: int) -> Conv | None:
        """Return the convolution of the shortcut, if the shape changes."""
        if not self.residual or (stride == 1 and inputs == self.width):
            return None
        return Conv(width=self.width, size=1, stride=stride, norm=self.norm, activation="none")

    def _strides(self) -> list[int]:
        return [self.stride, *[1] * (self.repeat - 1)]

    def layers(self, trace: Trace, name: str) -> list[Layer]:
        found: list[Layer] = []
        for number, stride in enumerate(self._strides(), 1):
            prefix = name if self.repeat == 1 else f"{name} {number}"
            found += self._layers_of_one(trace, stride, prefix)
            trace = found[-1].after
        return found

    def _layers_of_one(self, trace: Trace, stride: int, name: str) -> list[Layer]:
        """Return the layers of one block."""
        found: list[Layer] = []
        side, start = trace, trace
        for number, conv in enumerate(self._branch(stride), 1):
            found += conv.layers(trace, f"{name} conv {number}")
            trace = found[-1].after
        if not self.residual:
            return found
        if shortcut := self._shortcut(start.shape.channels, stride):
            found += shortcut.layers(start, f"{name} shortcut")
            side = found[-1].after
        joined = trace.join([side], trace.shape.channels)
        return [*found, Layer(f"{name} sum", "branch + input", joined)]

    def build(self, shape: MapShape) -> nn.Module:
        blocks = []
        for stride in self._strides():
            blocks.append(self._build_one(shape, stride))
            shape = self._layers_of_one(Trace(shape), stride, self.kind)[-1].after.shape
        return nn.Sequential(*blocks)

    def _build_one(self, shape: MapShape, stride: int) -> ResidualBlock:
        """Return one block."""
        branch = nn.Sequential(*build_blocks(self._branch(stride), shape))
        conv = self._shortcut(shape.channels, stride)
        shortcut: nn.Module | None = nn.Identity() if self.residual else None
        return ResidualBlock(branch, shortcut if conv is None else conv.build(shape))
