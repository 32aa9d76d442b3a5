"""The frontend `cnn`: a convolutional network under a Transformer or a recurrent encoder.

B images, H height, W width, C channels of a map, S positions, D width.
"""

import math
from collections.abc import Iterator
from typing import Any, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from typing_extensions import Self

from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting, DerivedSetting
from regard.data.tensors.padded import Padded
from regard.inputs.augmentation import Augment
from regard.inputs.image_frontends import ImageFrontend, ImageFrontendOptions, with_token
from regard.inputs.input import InputShape
from regard.nn.capture_hooks import record_grid
from regard.nn.convolution import (
    BlockOptions,
    Blocks,
    BlockStack,
    MapShape,
    check_blocks,
    default_blocks,
    network_layers,
    sized_blocks,
)

DEFAULT_WIDTH, CHANNELS = 64, 3  # for estimates


class CnnFrontend(ImageFrontend):
    """A convolutional network whose cells are the positions, with learned position embeddings.

    (Hybrid architecture of Dosovitskiy et al. 2021, 3.1; Carion et al. 2020, 3.2.)
    """

    def __init__(
        self, augment: Augment, blocks: list[BlockOptions], shape: MapShape, width: int, token: bool
    ) -> None:
        super().__init__(augment)
        self.stack = BlockStack(blocks, shape)
        channels, *cells = network_layers(blocks, shape)[-1].after.shape
        self.width, self.cells = width, (cells[0], cells[1])
        self.project = nn.Linear(channels, width)
        self.class_token = nn.Parameter(torch.randn(width) * 0.02) if token else None
        self.positions = nn.Parameter(torch.randn(math.prod(cells) + token, width) * 0.02)

    def embed(self, pixels: Tensor, source: Padded) -> Padded:
        """Return the class token, if any, and the cells row by row: (B, S, D)."""
        record_grid(self, *self.cells, before=int(self.class_token is not None))
        x = self.project(self.stack(pixels).flatten(1, 2))
        return with_token(source, x, self.class_token, self.positions)


class CnnFrontendOptions(ImageFrontendOptions):
    """Options of a convolutional network under another encoder."""

    kind: Literal["cnn"] = "cnn"
    blocks: list[Blocks] | None = Field(
        None, description="layers of the network; None: a residual network with three map sizes"
    )
    class_token: bool = Field(False, description="add a learned first position")

    @model_validator(mode="after")
    def _check_blocks(self) -> Self:
        check_blocks(self.blocks, None)
        return self

    def positions(self, stats: DataStats) -> int:
        layers = network_layers(self._network(DEFAULT_WIDTH), MapShape(CHANNELS, *stats.grid))
        return layers[-1].after.shape.height * layers[-1].after.shape.width + self.class_token

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        if self.blocks is None and (width := config.model.encoder.width):
            blocks = [block.model_dump(mode="json") for block in default_blocks(width)]
            yield DerivedSetting("blocks", blocks, stats.reason)

    def _network(self, width: int) -> list[BlockOptions]:
        """Return the blocks with all widths set."""
        return sized_blocks(self.blocks or default_blocks(width), width)

    def build(
        self, shape: InputShape, width: int, scale: float, dropout: float, direct: bool
    ) -> CnnFrontend:
        image = MapShape(shape.size, *shape.grid)
        return CnnFrontend(self.augment, self._network(width), image, width, self.class_token)
