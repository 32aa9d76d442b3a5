"""Random changes of training images: shift, crop, flip and cutout.

B rows of a batch, H height, W width, C channels.
"""

from collections.abc import Iterator
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting, Options
from regard.nn.dropout import thread_generator

SHIFT_FRACTION = 12


class Augment(Options):
    """Random changes of each training image. Pixels beyond the border repeat the border."""

    shift: int | None = Field(
        None,
        ge=0,
        description="shift by up to this many pixels in each direction; None: a twelfth of the "
        "size for labels of images, otherwise 0",
    )
    crop: float = Field(
        0.0, ge=0, lt=1, description="crop up to this fraction of each side, and scale up again"
    )
    flip: bool = Field(False, description="mirror every other image left to right")
    cutout: int = Field(0, ge=0, description="side of a square that is set to the mean color")

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        """Yield small shifts for classifiers. Flips are not a default: they change digits."""
        model = config.model
        shifts = stats.labels and model.is_sized and not model.is_convex(stats)
        size = max(stats.grid) // SHIFT_FRACTION
        reason = f"images of {stats.grid[0]} x {stats.grid[1]} pixels"
        if model.is_sized:
            yield from self.auto_settings(reason, shift=size if shifts else 0)

    def __call__(self, pixels: Tensor) -> Tensor:
        """Return images (B, H, W, C), each changed at random (generator of this thread)."""
        if not (self.shift or self.crop or self.flip or self.cutout):
            return pixels
        count = len(pixels)
        random = torch.rand(count, 8, device=pixels.device, generator=thread_generator())
        if self.shift or self.flip or self.crop:
            pixels = self._moved(pixels, random)
        if self.cutout:
            pixels = cut_out(pixels, self.cutout, random[:, 6], random[:, 7])
        return pixels

    def _moved(self, pixels: Tensor, random: Tensor) -> Tensor:
        """Return the images after crop, shift and flip. random: (B, 8), from 0 to 1."""
        height, width = pixels.shape[1:3]
        scale = 1 - self.crop * random[:, 5]  # fraction of each side that is kept
        shift = self.shift or 0
        offsets = ((2 * shift + 1) * random[:, :2]).floor() - shift
        rows = positions(height, scale, random[:, 3], offsets[:, 0])
        columns = positions(width, scale, random[:, 4], offsets[:, 1])
        if self.flip:
            columns = torch.where(random[:, 2:3] < 0.5, columns.flip(1), columns)
        if not self.crop:
            return at(pixels, rows.long(), columns.long())
        return interpolate(interpolate(pixels, rows), columns.clone(), across=True)


def positions(length: int, scale: Tensor, start: Tensor, offset: Tensor) -> Tensor:
    """Return where each pixel of a side comes from, (B, length), limited to the image.

    scale: (B,), fraction of the side that is kept. start: (B,), from 0 to 1, where the kept part
    starts in the free space. offset: (B,), pixels added.
    """
    steps = torch.arange(length, device=scale.device) + 0.5
    kept = scale[:, None] * length
    places = start[:, None] * (length - kept) + steps * scale[:, None] - 0.5 + offset[:, None]
    return places.clamp(0, length - 1)


def at(pixels: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return the pixels (B, H, W, C) at these rows (B, H) and columns (B, W) of each image."""
    index = torch.arange(len(pixels), device=pixels.device)[:, None, None]
    return pixels[index, rows[:, :, None], columns[:, None, :]]


def interpolate(pixels: Tensor, places: Tensor, across: bool = False) -> Tensor:
    """Return linearly interpolated rows, or columns if `across`, at places (B, length)."""
    x = pixels.transpose(1, 2) if across else pixels
    index = torch.arange(len(x), device=x.device)[:, None]
    low = places.floor().long()
    high = (low + 1).clamp(max=x.shape[1] - 1)
    weight = (places - low)[:, :, None, None].to(x.dtype)
    found = torch.lerp(x[index, low], x[index, high], weight)
    return found.transpose(1, 2) if across else found


def cut_out(pixels: Tensor, side: int, row: Tensor, column: Tensor) -> Tensor:
    """Set a square of each image to 0, the mean color (DeVries and Taylor 2017).

    row, column: (B,), from 0 to 1, position of its center. It may extend beyond the border.
    """
    inside = []
    for length, center in zip(pixels.shape[1:3], (row, column), strict=True):
        first = (center * length).floor() - side // 2
        steps = torch.arange(length, device=pixels.device)
        inside.append((steps >= first[:, None]) & (steps < first[:, None] + side))
    square = inside[0][:, :, None] & inside[1][:, None, :]  # (B, H, W)
    return pixels.masked_fill(square.unsqueeze(-1), 0.0)
