"""Convolutional layers. B images, C channels, H height, W width of a map."""

from typing import Literal

from pydantic import Field, model_validator
from torch import Tensor, nn
from typing_extensions import Self

from regard.core.errors import UserError
from regard.nn.capture_hooks import record_filters
from regard.nn.convolution.block import (
    Activate,
    BlockOptions,
    MapActivation,
    MapNorm,
    MapNormKind,
    init_layer,
)
from regard.nn.convolution.sizes import Layer, MapShape, Trace, Window


class ConvLayer(nn.Module):
    """A convolution, a norm and an activation function (LeCun et al. 1989).

    With a norm, the convolution has no bias, which the norm would subtract.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        window: Window,
        norm: MapNormKind,
        activation: MapActivation,
        groups: int = 1,
    ) -> None:
        super().__init__()
        plain = norm == "none"
        self.conv = nn.Conv2d(inputs, outputs, *window, groups=groups, bias=plain)
        init_layer(self.conv, activation)
        self.norm = nn.Identity() if plain else MapNorm(outputs)
        self.activation = Activate(activation)

    def forward(self, x: Tensor) -> Tensor:
        """Return the maps (B, C', H', W')."""
        record_filters(self, lambda: self.conv.weight.permute(0, 2, 3, 1))
        return self.activation(self.norm(self.conv(x)))


class Conv(BlockOptions):
    """A convolutional layer. A size of 1 mixes the channels of each cell."""

    kind: Literal["conv"] = "conv"
    width: int | None = Field(
        None, gt=0, description="number of filters; None: width of the encoder"
    )
    size: int = Field(3, ge=1, description="height and width of a filter")
    stride: int = Field(1, ge=1, description="cells between neighboring windows")
    padding: int | None = Field(
        None, ge=0, description="zeros at each end; None: size // 2, which keeps the size"
    )
    groups: int = Field(
        1, ge=1, description="groups of channels; a filter reads the channels of its group"
    )
    norm: MapNormKind = Field("none", description="batch norm before the activation function")
    activation: MapActivation = "relu"

    @model_validator(mode="after")
    def _check_groups(self) -> Self:
        if self.width is not None and self.width % self.groups:
            raise ValueError(f"width {self.width} is not divisible by groups {self.groups}")
        return self

    @property
    def output(self) -> int | None:
        return self.width

    @property
    def window(self) -> Window:
        """Return the window of the filters."""
        padding = self.size // 2 if self.padding is None else self.padding
        return Window(self.size, self.stride, padding)

    @property
    def text(self) -> str:
        """Return a short description."""
        size, stride, padding = self.window
        text = f"{size} x {size}" + (f", stride {stride}" if stride > 1 else "")
        text += f", padding {padding}" if padding else ""
        text += f", groups {self.groups}" if self.groups > 1 else ""
        return text + (", batch norm" if self.norm == "batch" else "")

    def layers(self, trace: Trace, name: str) -> list[Layer]:
        assert self.width
        inputs, plain = trace.shape.channels, self.norm == "none"
        if inputs % self.groups:
            raise UserError(
                f"{name}: groups: expected a divisor of {inputs} channels, found {self.groups}"
            )
        after = trace.slide(self.window, self.width, name)
        weights = inputs // self.groups * self.size**2 * self.width
        other = self.width if plain else 2 * self.width  # bias, or weight and bias of the norm
        cells = after.shape.height * after.shape.width
        return [Layer(name, self.text, after, weights + other, weights * cells)]

    def build(self, shape: MapShape) -> ConvLayer:
        assert self.width
        return ConvLayer(
            shape.channels, self.width, self.window, self.norm, self.activation, self.groups
        )
