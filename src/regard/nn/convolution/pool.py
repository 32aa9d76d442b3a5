"""Pooling layers, which replace each window of a map by its maximum or its mean."""

from typing import Literal

import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn
from typing_extensions import Self

from regard.nn.convolution.block import BlockOptions
from regard.nn.convolution.sizes import Layer, MapShape, Trace, Window

PoolMode = Literal["max", "mean"]


class PoolLayer(nn.Module):
    """The maximum or mean of each window. The mean counts padding as zeros, as torch does."""

    def __init__(self, mode: PoolMode, window: Window) -> None:
        super().__init__()
        self.mode, self.window = mode, window

    def forward(self, x: Tensor) -> Tensor:
        """Return the maps (B, C, H', W') of maps (B, C, H, W)."""
        pool = F.max_pool2d if self.mode == "max" else F.avg_pool2d
        return pool(x, *self.window)


class GlobalPoolLayer(nn.Module):
    """The maximum or mean of each channel (Lin et al. 2014, 3.2)."""

    def __init__(self, mode: PoolMode) -> None:
        super().__init__()
        self.mode = mode

    def forward(self, x: Tensor) -> Tensor:
        """Return one cell per image (B, C, 1, 1)."""
        return x.amax((2, 3), True) if self.mode == "max" else x.mean((2, 3), True)


class MapPool(BlockOptions):
    """A pooling layer."""

    kind: Literal["pool"] = "pool"
    mode: PoolMode = Field("max", description="value that represents a window")
    size: int = Field(2, ge=1, description="height and width of a window")
    stride: int | None = Field(
        None, ge=1, description="cells between neighboring windows; None: size"
    )
    padding: int = Field(0, ge=0, description="cells at each end, at most size // 2")

    @model_validator(mode="after")
    def _check_padding(self) -> Self:
        if 2 * self.padding > self.size:
            raise ValueError(f"padding {self.padding} is larger than half of size {self.size}")
        return self

    @property
    def window(self) -> Window:
        """Return the window."""
        return Window(self.size, self.stride or self.size, self.padding)

    def layers(self, trace: Trace, name: str) -> list[Layer]:
        window = self.window
        text = f"{self.mode} of {window.size} x {window.size}, stride {window.stride}"
        text += f", padding {window.padding}" if window.padding else ""
        return [Layer(name, text, trace.slide(window, trace.shape.channels, name))]

    def build(self, shape: MapShape) -> PoolLayer:
        return PoolLayer(self.mode, self.window)


class GlobalPool(BlockOptions):
    """Pooling over the whole map."""

    kind: Literal["global"] = "global"
    mode: PoolMode = Field("mean", description="value that represents a channel")

    def layers(self, trace: Trace, name: str) -> list[Layer]:
        return [Layer(name, f"{self.mode} of all cells", trace.collapse(trace.shape.channels))]

    def build(self, shape: MapShape) -> GlobalPoolLayer:
        return GlobalPoolLayer(self.mode)
