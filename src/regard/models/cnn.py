"""Convolutional encoders of images. B images, H height, W width, C channels, D output width."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from typing_extensions import Self

from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting, DerivedSetting
from regard.data.tensors.padded import Padded
from regard.inputs.frontend import Frontend
from regard.models.contracts import EncoderOptions
from regard.nn.capture_hooks import record_grid
from regard.nn.convolution import (
    BlockOptions,
    Blocks,
    BlockStack,
    Layer,
    MapShape,
    check_blocks,
    default_blocks,
    last_output,
    network_layers,
    sized_blocks,
)
from regard.nn.dropout import Dropout

NOMINAL = (32, 32)  # pixels, for estimates without data
CHANNELS = 3  # of an image, for estimates
DEFAULT_WIDTH = 64
POSITION_DEVIATION = 0.02  # of new positions, as in ViT


class CnnEncoder(nn.Module):
    """A convolutional network. Each cell of its last map is one position of the output.

    positions: cells, if a learned vector is added to each one, otherwise 0. Without it, the output
    hardly depends on where in the image something is.
    """

    def __init__(self, stack: BlockStack, positions: int, width: int, dropout: float) -> None:
        super().__init__()
        self.stack = stack
        table = torch.randn(positions, width) * POSITION_DEVIATION
        self.positions = nn.Parameter(table) if positions else None
        self.dropout = Dropout(dropout)

    def forward(self, source: Padded) -> Padded:
        """Return the cells (B, H' W', D) of the last map for images (B, H, W, C)."""
        maps: Tensor = self.stack(source.data)
        record_grid(self, maps.shape[1], maps.shape[2])
        x = maps.flatten(1, 2)
        if self.positions is not None:
            x = x + self.positions.to(x.dtype)
        mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        return Padded(self.dropout(x), mask)


class CnnEncoderOptions(EncoderOptions):
    """Options of a convolutional network, a list of blocks."""

    is_special: ClassVar[bool] = True
    direct: ClassVar[bool] = True
    kind: Literal["cnn"] = "cnn"
    width: int | None = Field(None, gt=0, description="output channels of the last block")
    blocks: list[Blocks] | None = Field(
        None, description="layers of the network; None: a residual network with three map sizes"
    )
    positions: bool | None = Field(
        None,
        description="add a learned position to each cell of the last map; None: yes, except for "
        "labels of images",
    )
    dropout: float | None = Field(None, ge=0, lt=1, description="dropout rate of the output")

    @model_validator(mode="after")
    def _check_width(self) -> Self:
        check_blocks(self.blocks, self.width)
        return self

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
        return sized_blocks(self.blocks or default_blocks(self.width), self.width)

    @property
    def features(self) -> dict[str, Any]:
        return {"blocks": len(self.blocks or [])}

    def own_width(self, stats: DataStats) -> int | None:
        return self.width or last_output(self.blocks or []) or DEFAULT_WIDTH

    def weights_for(self, stats: DataStats) -> int:
        """Return how many multiply-adds an image of this size needs."""
        grid = stats.grid if all(stats.grid) else NOMINAL
        return sum(layer.operations for layer in self.layers(MapShape(CHANNELS, *grid)))

    def layers(self, shape: MapShape) -> list[Layer]:
        """Return the layers for images of this shape; raise UserError if one does not fit."""
        return network_layers(self.network, shape)

    def default_sizes(self, stats: DataStats, width: int) -> dict[str, Any]:
        return {"width": width, "positions": not stats.labels}

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        yield from super().propose(stats, config)
        if self.blocks is None and self.width:
            blocks = [block.model_dump(mode="json") for block in default_blocks(self.width)]
            yield DerivedSetting("blocks", blocks, stats.reason)

    def default_dropout(self, stats: DataStats, config: Any) -> float:
        return 0.0

    def output_for(self, frontend: Frontend) -> int:
        return self.layers(image_shape(frontend))[-1].after.shape.channels

    def build_for(self, frontend: Frontend) -> CnnEncoder:
        assert self.dropout is not None
        shape = image_shape(frontend)
        channels, *grid = self.layers(shape)[-1].after.shape
        positions = math.prod(grid) if self.positions else 0
        return CnnEncoder(BlockStack(self.network, shape), positions, channels, self.dropout)


def image_shape(frontend: Frontend) -> MapShape:
    """Return the shape of the images that a frontend passes on."""
    return MapShape(frontend.width, *frontend.grid)
