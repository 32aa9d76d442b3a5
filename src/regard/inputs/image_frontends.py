"""Frontends of images: flat vectors, the grid itself, and patches; and random changes in training.

B rows of a batch, H height, W width, C channels, S length, D width, P side of a patch.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting
from regard.data.tensors.padded import Padded
from regard.inputs.augmentation import Augment
from regard.inputs.frontend import Frontend, FrontendOptions
from regard.inputs.input import InputShape
from regard.nn.capture_hooks import record_filters, record_grid, record_input

NUM_PATCHES = 49  # default number of patches, about
PADDING_COST = 0.5  # how much worse a patch size is that needs padding, as log of patch count


class ImageFrontend(Frontend):
    """Base class of frontends that read images (B, H, W, C)."""

    def __init__(self, augment: Augment) -> None:
        super().__init__()
        self.augment = augment

    def forward(self, source: Padded) -> Padded:
        """Return the vectors (B, S, D) of images (B, H, W, C), randomly changed in training."""
        pixels = self.augment(source.data) if self.training else source.data
        return self.embed(record_input(self, pixels), source)

    @abstractmethod
    def embed(self, pixels: Tensor, source: Padded) -> Padded:
        """Return the vectors (B, S, D) of images (B, H, W, C)."""


class ImageFrontendOptions(FrontendOptions):
    """Base class of the options of image frontends."""

    reads: ClassVar[str] = "image"
    augment: Augment = Field(Augment(), description="random changes of training images")


class FlatFrontend(ImageFrontend):
    """An image as one vector of all its values, projected unless the encoder is `direct`."""

    one_shape: ClassVar[bool] = True

    def __init__(self, augment: Augment, adapt: nn.Module, width: int) -> None:
        super().__init__(augment)
        self.adapt = adapt
        self.width = width

    def embed(self, pixels: Tensor, source: Padded) -> Padded:
        """Return one vector (B, 1, D) per image."""
        return source._replace(data=self.adapt(pixels.flatten(1).unsqueeze(1)))


class FlatFrontendOptions(ImageFrontendOptions):
    """Options of images as one vector, for models without convolution or attention."""

    kind: Literal["flat"] = "flat"

    @classmethod
    def suits(cls, uses: frozenset[str], direct: bool) -> bool:
        return direct

    def build(
        self, shape: InputShape, width: int, scale: float, dropout: float, direct: bool
    ) -> FlatFrontend:
        if direct:
            return FlatFrontend(self.augment, nn.Identity(), shape.values)
        return FlatFrontend(self.augment, nn.Linear(shape.values, width), width)


class GridFrontend(ImageFrontend):
    """The images themselves (B, H, W, C), for encoders that read grids."""

    def __init__(self, augment: Augment, channels: int, grid: tuple[int, int]) -> None:
        super().__init__(augment)
        self.width = channels
        self.grid = grid

    def embed(self, pixels: Tensor, source: Padded) -> Padded:
        """Return the images (B, H, W, C) unchanged."""
        return source._replace(data=pixels)


class GridFrontendOptions(ImageFrontendOptions):
    """Options of images as a grid of pixels."""

    carries: ClassVar[frozenset[str]] = frozenset({"grid"})
    kind: Literal["grid"] = "grid"

    @classmethod
    def suits(cls, uses: frozenset[str], direct: bool) -> bool:
        return "grid" in uses

    def build(
        self, shape: InputShape, width: int, scale: float, dropout: float, direct: bool
    ) -> GridFrontend:
        return GridFrontend(self.augment, shape.size, shape.grid)


class PatchFrontend(ImageFrontend):
    """Square patches, projected, with learned positions (Dosovitskiy et al. 2021, eq. 1).

    Patches at the right and lower border are padded with the mean color, if necessary.
    """

    def __init__(
        self, augment: Augment, shape: InputShape, patch: int, class_token: bool, width: int
    ) -> None:
        super().__init__(augment)
        self.patch, self.width = patch, width
        self.cells = patch_grid(shape.grid, patch)
        self.project = nn.Linear(patch * patch * shape.size, width)
        self.class_token = nn.Parameter(torch.randn(width) * 0.02) if class_token else None
        count = math.prod(self.cells) + class_token
        self.positions = nn.Parameter(torch.randn(count, width) * 0.02)

    def embed(self, pixels: Tensor, source: Padded) -> Padded:
        """Return the class token, if any, and the patches row by row: (B, S, D)."""
        record_grid(self, *self.cells, before=int(self.class_token is not None))
        record_filters(self, self._filters)
        x = self.project(self.patches(pixels))
        return with_token(source, x, self.class_token, self.positions)

    def _filters(self) -> Tensor:
        """Return the weights of the projection as filters (D, P, P, C)."""
        return self.project.weight.unflatten(1, (self.patch, self.patch, -1))

    def patches(self, pixels: Tensor) -> Tensor:
        """Return the values (B, S, P * P * C) of all patches of images (B, H, W, C)."""
        side, (rows, columns) = self.patch, self.cells
        below, right = rows * side - pixels.shape[1], columns * side - pixels.shape[2]
        if below or right:
            pixels = F.pad(pixels, (0, 0, 0, right, 0, below))
        x = pixels.unflatten(2, (columns, side)).unflatten(1, (rows, side))
        return x.transpose(2, 3).flatten(3).flatten(1, 2)  # (B, rows, P, columns, P, C) before


class PatchFrontendOptions(ImageFrontendOptions):
    """Options of images as patches, for Transformers (ViT) and recurrent encoders."""

    kind: Literal["patches"] = "patches"
    patch: int | None = Field(
        None, gt=0, description=f"side of a patch in pixels; None: about {NUM_PATCHES} patches"
    )
    class_token: bool = Field(True, description="add a learned first position")

    def positions(self, stats: DataStats) -> int:
        patch = self.patch or default_patch(stats.grid)
        return math.prod(patch_grid(stats.grid, patch)) + self.class_token

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        reason = f"images of {stats.grid[0]} x {stats.grid[1]} pixels"
        yield from self.auto_settings(reason, patch=default_patch(stats.grid))

    def build(
        self, shape: InputShape, width: int, scale: float, dropout: float, direct: bool
    ) -> PatchFrontend:
        patch = self.patch or default_patch(shape.grid)
        return PatchFrontend(self.augment, shape, patch, self.class_token, width)


def with_token(source: Padded, x: Tensor, token: Tensor | None, positions: Tensor) -> Padded:
    """Return vectors (B, S, D) after the class token (D,), if any, plus positions (S, D)."""
    if token is not None:
        x = torch.cat([token.expand(len(x), 1, -1).to(x.dtype), x], 1)
    mask = source.mask.new_ones(1, 1).expand(x.shape[:2])
    return source._replace(data=x + positions.to(x.dtype), mask=mask)


def patch_grid(size: tuple[int, int], patch: int) -> tuple[int, int]:
    """Return the number of rows and columns of patches of an image."""
    return -(-size[0] // patch), -(-size[1] // patch)


def default_patch(size: tuple[int, int]) -> int:
    """Return the patch size that gives about NUM_PATCHES patches, without padding if possible."""

    def cost(patch: int) -> float:
        padded = any(side % patch for side in size)
        count = math.prod(patch_grid(size, patch))
        return abs(math.log(count / NUM_PATCHES)) + PADDING_COST * padded

    return min(range(1, max(size) + 1), key=cost)
