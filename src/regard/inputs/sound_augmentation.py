"""Random changes of training sounds, applied to log-mel features.

B rows of a batch, S windows, F bands. All random numbers come from the generator of this thread,
so that a run can resume.
"""

from typing import NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from regard.core.options import Options
from regard.nn.dropout import thread_generator

NOISE_FLOOR = 2.0  # deviation from the mean noise level in nats, per band


class Features(NamedTuple):
    """Log-mel features (B, S, F) with mask (B, S)."""

    data: Tensor
    mask: Tensor


class SoundAugment(Options):
    """Random changes of each training sound. They are computed on log-mel features."""

    speed: float = Field(
        0.15,
        ge=0,
        le=0.5,
        description="play up to this fraction faster or slower, which also shifts the pitch (Ko et "
        "al. 2015)",
    )
    warp: float = Field(
        0.15,
        ge=0,
        le=0.5,
        description="scale frequencies up or down by up to this fraction, like another vocal tract "
        "(Jaitly and Hinton 2013)",
    )
    noise: float = Field(
        0.0,
        ge=0,
        le=1,
        description="fraction of sounds that noise is added to, 0 to 30 dB below the sound",
    )
    frequency_masks: int = Field(
        2, ge=0, description="number of bands of frequencies that are masked (SpecAugment)"
    )
    frequency_width: float = Field(
        0.15, ge=0, le=1, description="maximum fraction of the frequencies in a masked band"
    )
    time_masks: int = Field(2, ge=0, description="number of masked stretches of time (SpecAugment)")
    time_width: float = Field(
        0.1, ge=0, le=1, description="maximum fraction of the sound in a masked stretch"
    )

    def change(self, x: Features, edges: Tensor) -> Features:
        """Return features with another speed, other frequencies, and noise.

        edges: (F + 2,), frequencies of the bands.
        """
        random = torch.rand(len(x.data), 5, device=x.data.device, generator=thread_generator())
        speed = 1 + self.speed * (2 * random[:, 0] - 1)
        if self.speed:
            x = at_speed(x, speed)
        if self.speed or self.warp:
            warp = 1 + self.warp * (2 * random[:, 1] - 1)
            x = x._replace(data=with_frequencies(x.data, speed * warp, edges))
        if self.noise:
            loud = torch.where(random[:, 2] < self.noise, 3 * random[:, 3] * 2.302585, 100.0)
            x = x._replace(data=with_noise(x, loud))
        return x

    def hide(self, x: Features) -> Tensor:
        """Return standardized features with masked bands and stretches (Park et al. 2019)."""
        data, (rows, length, bands) = x.data, x.data.shape
        count = self.frequency_masks + self.time_masks
        if not count:
            return data
        random = torch.rand(rows, count, 2, device=data.device, generator=thread_generator())
        split = self.frequency_masks
        real = x.mask.sum(1, keepdim=True)  # (B, 1)
        total = torch.full_like(real, bands)
        in_band = spans(random[:, :split], total, self.frequency_width, bands)
        in_time = spans(random[:, split:], real, self.time_width, length)
        return data.masked_fill(in_band[:, None, :] | in_time[:, :, None], 0.0)


def spans(random: Tensor, total: Tensor, width: float, size: int) -> Tensor:
    """Return which of `size` positions are in one of n random spans: (B, size).

    random: (B, n, 2), from 0 to 1, for width and start. total: (B, 1), positions to choose from.
    width: maximum fraction of them in a span.
    """
    wide = random[..., 0] * width * total  # (B, n)
    start = random[..., 1] * (total - wide)
    at = torch.arange(size, device=random.device) + 0.5
    inside = (at >= start.unsqueeze(-1)) & (at < (start + wide).unsqueeze(-1))  # (B, n, size)
    return inside.any(1)


def at_speed(x: Features, speed: Tensor) -> Features:
    """Return features played faster or slower, linearly interpolated. speed: (B,)."""
    old = x.mask.sum(1)
    new = (old / speed).round().long().clamp(min=1)
    steps = torch.arange(int(new.max()), device=x.data.device)
    mask = steps < new[:, None]
    places = (steps + 0.5) * (old / new)[:, None] - 0.5
    places = places.clamp(min=0).minimum((old - 1)[:, None].to(places.dtype))
    low = places.floor().long()
    high = (low + 1).minimum((old - 1)[:, None])
    rows = torch.arange(len(old), device=x.data.device)[:, None]
    weight = (places - low).unsqueeze(-1)
    return Features(torch.lerp(x.data[rows, low], x.data[rows, high], weight), mask)


def with_frequencies(data: Tensor, factor: Tensor, edges: Tensor) -> Tensor:
    """Return features (B, S, F) whose frequencies are multiplied by a factor (B,).

    edges: (F + 2,), frequencies at which bands start, peak and end. Bands beyond the first and the
    last one repeat them.
    """
    bands = data.shape[-1]
    low, high = to_mel(edges[0]), to_mel(edges[-1])
    mel = to_mel(edges[1:-1] / factor[:, None])  # (B, F), where each band comes from
    places = ((mel - low) / (high - low) * (bands + 1) - 1).clamp(0, bands - 1)
    index = places.floor().long()
    weight = (places - index).unsqueeze(1)
    below, above = (
        data.gather(2, one.unsqueeze(1).expand(-1, data.shape[1], -1))
        for one in (index, (index + 1).clamp(max=bands - 1))
    )
    return torch.lerp(below, above, weight)


def to_mel(hertz: Tensor) -> Tensor:
    """Return frequencies on the mel scale."""
    return 2595.0 * torch.log10(1.0 + hertz / 700.0)


def with_noise(x: Features, loud: Tensor) -> Tensor:
    """Return features with noise that is `loud` (B,) nats below the mean power of the sound.

    The level differs between bands and windows, as that of real noise.
    """
    shape = x.data.shape
    real = x.mask.unsqueeze(-1)
    power = (x.data.exp() * real).sum((1, 2)) / (real.sum((1, 2)) * shape[-1])
    color = torch.randn(shape[0], 1, shape[2], device=x.data.device, generator=thread_generator())
    rough = torch.rand(shape, device=x.data.device, generator=thread_generator())
    exponential = -torch.log1p(-rough.clamp(max=0.999))  # power of Gaussian noise at a frequency
    level = power.log()[:, None, None] - loud[:, None, None] + NOISE_FLOOR / 2 * color
    return torch.logaddexp(x.data, level + exponential.clamp(min=1e-4).log())
