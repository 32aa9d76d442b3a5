"""Fully connected layers and dropout between the layers of a convolutional network."""

from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from regard.nn.convolution.block import Activate, BlockOptions, MapActivation, init_layer
from regard.nn.convolution.sizes import Layer, MapShape, Trace
from regard.nn.dropout import Dropout


class DenseLayer(nn.Module):
    """A fully connected layer, which reads all values of a map and returns one cell.

    It equals a convolution whose filters are as large as the map.
    """

    def __init__(self, inputs: int, outputs: int, activation: MapActivation) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        init_layer(self.linear, activation)
        self.activation = Activate(activation)

    def forward(self, x: Tensor) -> Tensor:
        """Return one cell per image (B, C', 1, 1) for maps (B, C, H, W)."""
        return self.activation(self.linear(x.flatten(1)))[:, :, None, None]


class Dense(BlockOptions):
    """A fully connected layer over all values of a map."""

    kind: Literal["dense"] = "dense"
    width: int | None = Field(None, gt=0, description="number of units; None: width of the encoder")
    activation: MapActivation = "relu"

    @property
    def output(self) -> int | None:
        return self.width

    def layers(self, trace: Trace, name: str) -> list[Layer]:
        assert self.width
        weights = trace.shape.size * self.width
        text = f"fully connected, {trace.shape.size:,} inputs"
        return [Layer(name, text, trace.collapse(self.width), weights + self.width, weights)]

    def build(self, shape: MapShape) -> DenseLayer:
        assert self.width
        return DenseLayer(shape.size, self.width, self.activation)


class DropoutBlock(BlockOptions):
    """Dropout of single values."""

    kind: Literal["dropout"] = "dropout"
    rate: float = Field(0.5, ge=0, lt=1, description="fraction of values set to 0 in training")

    def layers(self, trace: Trace, name: str) -> list[Layer]:
        return [Layer(name, f"rate {self.rate:g}", trace)]

    def build(self, shape: MapShape) -> Dropout:
        return Dropout(self.rate)
