"""Convolutional encoders of images. B images, H height, W width, C channels, D output width."""

from typing import Any, ClassVar, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from typing_extensions import Self

from regard.core.data_stats import DataStats
from regard.data.tensors.padded import Padded
from regard.inputs.frontend import Frontend
from regard.models.contracts import EncoderOptions
from regard.nn.capture_hooks import record_hidden
from regard.nn.convolution import (
    BlockOptions,
    Blocks,
    Conv,
    Layer,
    MapShape,
    ResidualOptions,
    Trace,
    build_blocks,
    trace_blocks,
)
from regard.nn.dropout import Dropout

NOMINAL, NOMINAL_SCALE = MapShape(3, 256, 256), 64  # to estimate the cost for 32 x 32 pixels


class CnnEncoder(nn.Module):
    """A convolutional network. Each cell of its last map is one position of the output."""

    def __init__(self, blocks: nn.ModuleList, dropout: float) -> None:
        super().__init__()
        self.blocks = blocks
        self.dropout = Dropout(dropout)

    def forward(self, source: Padded) -> Padded:
        """Return the cells (B, H' W', D) of the last map for images (B, H, W, C)."""
        x = source.data.permute(0, 3, 1, 2)  # channels last in memory, which is faster
        for block in self.blocks:
            x = block(x)
            record_hidden(block, cells(x))
        data = self.dropout(cells(x))
        return Padded(data, torch.ones(data.shape[:2], dtype=torch.bool, device=data.device))


def cells(x: Tensor) -> Tensor:
    """Return the cells (B, H W, C) of maps (B, C, H, W)."""
    return x.permute(0, 2, 3, 1).flatten(1, 2)


class CnnEncoderOptions(EncoderOptions):
    """Options of a convolutional network, a list of blocks."""

    direct: ClassVar[bool] = True
    kind: Literal["cnn"] = "cnn"
    width: int | None = Field(None, gt=0, description="output channels of the last block")
    blocks: list[Blocks] | None = Field(
        None, description="layers of the network; None: a residual network with three map sizes"
    )
    dropout: float | None = Field(None, ge=0, lt=1, description="dropout rate of the output")

    @model_validator(mode="after")
    def _check_width(self) -> Self:
        if self.blocks is None:
            return self
        if not any(hasattr(block, "width") for block in self.blocks):
            raise ValueError(
                "blocks: expected at least one conv, residual, inception or dense block"
            )
        last = self._last_output()
        if last and self.width and last != self.width:
            raise ValueError(
                f"width {self.width} differs from the {last} output channels of the last block; "
                "omit one of them"
            )
        return self

    def _last_output(self) -> int | None:
        """Return the output channels of the last block that sets them, if known."""
        sized = [block for block in self.blocks or [] if hasattr(block, "width")]
        return sized[-1].output if sized else None

    @property
    def scale(self) -> float:
        return 1.0

    @property
    def uses(self) -> frozenset[str]:
        return frozenset({"grid"})

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"grid"})

    @property
    def network(self) -> list[BlockOptions]:
        """Return the blocks with all widths set. Sizes must be set."""
        assert self.width
        blocks = default_blocks(self.width) if self.blocks is None else self.blocks
        return [block.with_width(self.width) for block in blocks]

    @property
    def features(self) -> dict[str, Any]:
        return {"blocks": len(self.blocks or [])}

    @property
    def weights(self) -> int:
        """Return about how many multiply-adds an image of 32 x 32 pixels needs."""
        return sum(layer.operations for layer in self.layers(NOMINAL)) // NOMINAL_SCALE

    def layers(self, shape: MapShape) -> list[Layer]:
        """Return the layers for images of this shape; raise UserError if one does not fit."""
        return trace_blocks(self.network, Trace(shape))

    def default_sizes(self, stats: DataStats, width: int) -> dict[str, Any]:
        size = self.width or self._last_output() or width
        blocks = [block.model_dump(mode="json") for block in default_blocks(size)]
        return {"width": size, "blocks": blocks}

    def default_dropout(self, stats: DataStats, config: Any) -> float:
        return 0.0

    def output_for(self, frontend: Frontend) -> int:
        return self.layers(image_shape(frontend))[-1].after.shape.channels

    def build_for(self, frontend: Frontend) -> CnnEncoder:
        assert self.dropout is not None
        return CnnEncoder(build_blocks(self.network, image_shape(frontend)), self.dropout)


def default_blocks(width: int) -> list[BlockOptions]:
    """Return a small residual network with three map sizes (He et al. 2016, 4.2)."""
    quarter, half = max(1, width // 4), max(1, width // 2)
    return [
        Conv(width=quarter, norm="batch"),
        ResidualOptions(width=quarter),
        ResidualOptions(width=half, stride=2),
        ResidualOptions(width=width, stride=2),
    ]


def image_shape(frontend: Frontend) -> MapShape:
    """Return the shape of the images that a frontend passes on."""
    return MapShape(frontend.width, *frontend.grid)
