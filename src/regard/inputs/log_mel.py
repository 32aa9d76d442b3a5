"""Log-mel features of sounds: how much power each band has in each window.

T samples, S windows, N length of the Fourier transform, F bands.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor

LOWEST = 20.0  # Hz, lower edge of the first band
FLOOR = 1e-8  # of power, about the rounding noise of 16-bit samples
BLOCK = 4096  # windows that are transformed at a time, which bounds memory


@dataclass(frozen=True)
class Analysis:
    """How a sound is divided into windows, and these into bands.

    rate: in Hz. bands: number of them. window, step: in milliseconds.
    """

    rate: int
    bands: int
    window: float = 25.0
    step: float = 10.0

    @cached_property
    def length(self) -> int:
        """The samples per window."""
        return max(2, round(self.rate * self.window / 1000))

    @cached_property
    def hop(self) -> int:
        """The samples from the start of a window to the next one."""
        return max(1, round(self.rate * self.step / 1000))

    @cached_property
    def size(self) -> int:
        """The length of the Fourier transform: a power of two that gives each band a frequency."""
        size = 1 << (self.length - 1).bit_length()
        while not filters(self.rate, size, self.bands).any(0).all():
            size *= 2
        return size

    def windows(self, samples: int) -> int:
        """Return the number of windows in a sound of this many samples, without padding."""
        return max(0, 1 + (samples - self.length) // self.hop)

    def log_mel(self, samples: np.ndarray) -> np.ndarray:
        """Return the natural logarithm (S, F) of the power per band of samples (T,) from -1 to 1.

        Window s is multiplied by a Hann window w(n) = 0.5 - 0.5 cos(2 pi n / length), padded with
        zeros to the size of the Fourier transform X. The power of band f is the sum over k of
        H(k, f) |X(k)|^2, and at least FLOOR.
        """
        count = self.windows(len(samples))
        bank = torch.from_numpy(filters(self.rate, self.size, self.bands))
        found = np.empty((count, self.bands), np.float32)
        values = torch.from_numpy(np.ascontiguousarray(samples, np.float32))
        frames = values.unfold(0, self.length, self.hop) if count else values.new_zeros(0, 1)
        for start in range(0, count, BLOCK):
            windows = frames[start : start + BLOCK] * hann(self.length)
            power = torch.view_as_real(torch.fft.rfft(windows, self.size)).square().sum(-1)
            found[start : start + BLOCK] = (power @ bank).clamp(min=FLOOR).log().numpy()
        return found


@lru_cache(maxsize=8)
def hann(length: int) -> Tensor:
    """Return a periodic Hann window."""
    return torch.hann_window(length, dtype=torch.float32)


def to_mel(hertz: np.ndarray) -> np.ndarray:
    """Return frequencies on the mel scale (O'Shaughnessy 1987): 2595 log10(1 + f / 700)."""
    return 2595.0 * np.log10(1.0 + hertz / 700.0)


def to_hertz(mel: np.ndarray) -> np.ndarray:
    """Return the frequencies of values on the mel scale."""
    return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)


def band_edges(rate: int, bands: int) -> np.ndarray:
    """Return the frequencies (F + 2,) in Hz at which bands start, peak and end."""
    low, high = to_mel(np.array([min(LOWEST, rate / 8), rate / 2]))
    return to_hertz(np.linspace(low, high, bands + 2))


@lru_cache(maxsize=8)
def filters(rate: int, size: int, bands: int) -> np.ndarray:
    """Return the weight (N / 2 + 1, F) of each frequency in each band.

    Band f is a triangle in Hz, with weight 1 at its peak, from the peak of band f - 1 to that of
    band f + 1. The peaks have equal distances on the mel scale (Davis and Mermelstein 1980).
    """
    edges = band_edges(rate, bands)
    frequencies = np.arange(size // 2 + 1)[:, None] * rate / size
    rising = (frequencies - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - frequencies) / (edges[2:] - edges[1:-1])
    return np.maximum(0.0, np.minimum(rising, falling)).astype(np.float32)
