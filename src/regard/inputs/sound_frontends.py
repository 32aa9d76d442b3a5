"""Frontends of sounds: windows as they are, and windows after strided convolutions.

B rows of a batch, S windows, S' positions, F bands, C channels, D width.
"""

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn
from typing_extensions import Self

from regard.data.tensors.padded import Padded
from regard.inputs.frontend import Frontend, FrontendOptions
from regard.inputs.input import InputShape
from regard.inputs.log_mel import band_edges
from regard.inputs.sound_augmentation import Features, SoundAugment
from regard.nn.capture_hooks import record_input
from regard.nn.dropout import Dropout

DELTA_REACH = 2  # windows on each side
MIN_DEVIATION = 1e-2  # of a band within a recording


class SoundFrontend(Frontend):
    """Base class of frontends that read log-mel features (B, S, F).

    deltas: how often derivatives over time are added. scale: mean and deviation (F,) of each band;
    empty: those of each recording.
    """

    mean: Tensor
    std: Tensor
    edges: Tensor

    def __init__(self, augment: SoundAugment, shape: InputShape, deltas: int) -> None:
        super().__init__()
        self.augment, self.deltas = augment, deltas
        self.by_recording = not shape.scale
        mean, std = shape.scale or ((0.0,) * shape.size, (1.0,) * shape.size)
        self.register_buffer("mean", torch.tensor(mean), persistent=False)
        self.register_buffer("std", torch.tensor(std), persistent=False)
        edges = torch.from_numpy(band_edges(shape.rate, shape.size)).float()
        self.register_buffer("edges", edges, persistent=False)

    def forward(self, source: Padded) -> Padded:
        """Return the vectors (B, S', D) of features (B, S, F), randomly changed in training."""
        x = Features(source.data, source.mask)
        if self.training:
            x = self.augment.change(x, self.edges)
        x = Features(self.standardize(x), x.mask)
        if self.training:
            x = x._replace(data=self.augment.hide(x))
        real = x.mask.unsqueeze(-1)
        data = with_deltas(record_input(self, x.data).masked_fill(~real, 0.0), x.mask, self.deltas)
        return self.embed(source._replace(data=data, mask=x.mask))

    def max_vectors(self, length: int) -> int:
        slowest = round(length / (1 - self.augment.speed))
        return -(-slowest // self.stride)

    def standardize(self, x: Features) -> Tensor:
        """Return features with mean 0 and deviation 1 per band."""
        if not self.by_recording:
            return (x.data - self.mean) / self.std
        real = x.mask.unsqueeze(-1)
        count = real.sum(1, keepdim=True)
        centered = x.data - (x.data * real).sum(1, keepdim=True) / count
        variance = (centered.square() * real).sum(1, keepdim=True) / count
        return centered / variance.sqrt().clamp(min=MIN_DEVIATION)

    def embed(self, source: Padded) -> Padded:
        """Return the vectors (B, S', D) of standardized features, which are 0 in padding."""
        raise NotImplementedError


def with_deltas(data: Tensor, mask: Tensor, order: int) -> Tensor:
    """Return features (B, S, F) followed by their derivatives over time: (B, S, F (order + 1)).

    The derivative is the slope of the regression line over 5 windows (Furui 1986). Windows beyond
    the ends of a recording repeat its first and last one.
    """
    if not order:
        return data
    last = (mask.sum(1, keepdim=True) - 1).clamp(min=0)  # (B, 1)
    steps = torch.arange(data.shape[1], device=data.device)
    found = [data]
    for _ in range(order):
        slope = torch.zeros_like(data)
        for offset in range(1, DELTA_REACH + 1):
            after = (steps + offset).minimum(last).unsqueeze(-1).expand_as(data)
            before = (steps - offset).clamp(min=0).minimum(last).unsqueeze(-1).expand_as(data)
            slope = slope + offset * (found[-1].gather(1, after) - found[-1].gather(1, before))
        scale = 2 * sum(offset**2 for offset in range(1, DELTA_REACH + 1))
        found.append((slope / scale).masked_fill(~mask.unsqueeze(-1), 0.0))
    return torch.cat(found, -1)


class SoundFrontendOptions(FrontendOptions):
    """Base class of the options of sound frontends."""

    reads: ClassVar[str] = "sound"
    deltas: Literal[0, 1, 2] = Field(
        0, description="add the first, or first and second derivatives over time"
    )
    augment: SoundAugment = Field(SoundAugment(), description="random changes of training sounds")


class FramesFrontend(SoundFrontend):
    """Each window as one vector, projected unless the encoder is `direct`."""

    def __init__(
        self, augment: SoundAugment, shape: InputShape, deltas: int, width: int | None
    ) -> None:
        super().__init__(augment, shape, deltas)
        size = shape.size * (deltas + 1)
        self.width = width or size
        self.adapt: nn.Module = nn.Linear(size, width) if width else nn.Identity()

    def embed(self, source: Padded) -> Padded:
        """Return one vector (B, S, D) per window."""
        return source._replace(data=self.adapt(source.data))


class FramesFrontendOptions(SoundFrontendOptions):
    """Options of windows as they are, without convolution."""

    kind: Literal["frames"] = "frames"

    @classmethod
    def suits(cls, uses: frozenset[str], direct: bool) -> bool:
        return direct

    def build(
        self, shape: InputShape, width: int, scale: float, dropout: float, direct: bool
    ) -> FramesFrontend:
        return FramesFrontend(self.augment, shape, self.deltas, None if direct else width)


class MaskedConv(nn.Module):
    """A convolution over time and frequency that never reads padding, with a GELU.

    stride: in time; the stride over frequencies is 2.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.conv = nn.Conv2d(inputs, outputs, 3, (stride, 2), padding=1)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return maps (B, C', S', F') and their mask (B, S') for maps (B, C, S, F)."""
        found = F.gelu(self.conv(x))
        mask = mask[:, :: self.stride]  # position s reads the windows around stride * s
        return found.masked_fill(~mask[:, None, :, None], 0.0), mask


class ConvolvedFrontend(SoundFrontend):
    """Strided convolutions over time and frequency, projected to the width of the encoder."""

    def __init__(
        self,
        augment: SoundAugment,
        shape: InputShape,
        deltas: int,
        sizes: Sequence[tuple[int, int]],
        width: int,
        dropout: float,
    ) -> None:
        super().__init__(augment, shape, deltas)
        self.width, self.planes = width, deltas + 1
        self.stride = math.prod(stride for _, stride in sizes)
        layers, inputs, bands = [], self.planes, shape.size
        for channels, stride in sizes:
            layers.append(MaskedConv(inputs, channels, stride))
            inputs, bands = channels, -(-bands // 2)
        self.layers = nn.ModuleList(layers)
        self.project = nn.Linear(inputs * bands, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def embed(self, source: Padded) -> Padded:
        """Return the vectors (B, S', D) of the last maps."""
        x = source.data.unflatten(2, (self.planes, -1)).transpose(1, 2)  # (B, C, S, F)
        mask = source.mask
        for layer in self.layers:
            x, mask = layer(x, mask)
        x = self.norm(self.project(x.transpose(1, 2).flatten(2)))
        return source._replace(data=self.dropout(x), mask=mask)


class ConvolvedFrontendOptions(SoundFrontendOptions):
    """Options of strided convolutions over windows."""

    kind: Literal["convolution"] = "convolution"
    layers: int = Field(2, ge=1, le=6, description="number of convolutions")
    channels: int = Field(32, ge=1, description="channels of each convolution")
    stride: Literal[1, 2, 4, 8] = Field(
        2, description="windows per position; targets must be shorter than the sound in positions"
    )

    @model_validator(mode="after")
    def _check_stride(self) -> Self:
        if 2**self.layers < self.stride:
            raise ValueError(
                f"stride {self.stride}: expected at most {2**self.layers} with {self.layers} layers"
            )
        return self

    def reduced(self, lengths: np.ndarray) -> np.ndarray:
        return -(-lengths // self.stride)

    def sizes(self) -> list[tuple[int, int]]:
        """Return channels and stride in time of each layer. The last layers have stride 2."""
        strided = self.stride.bit_length() - 1
        plain = self.layers - strided
        return [(self.channels, 1 if index < plain else 2) for index in range(self.layers)]

    def build(
        self, shape: InputShape, width: int, scale: float, dropout: float, direct: bool
    ) -> ConvolvedFrontend:
        return ConvolvedFrontend(self.augment, shape, self.deltas, self.sizes(), width, dropout)
