"""Resampling: band-limited interpolation with a windowed sinc (Smith 1984).

T input samples, N output samples, P phases, K taps of a filter.
"""

from functools import lru_cache
from math import ceil, gcd

import numpy as np
import torch
import torch.nn.functional as F

from regard.data.reading.sounds import FULL_SCALE, Sound, check_count, quantize

ZERO_CROSSINGS = 16  # of the sinc, on each side
ROLLOFF = 0.95  # cutoff, as a fraction of the lower Nyquist frequency
MAX_BANK = 1 << 21  # numbers in a bank of filters; otherwise each phase has a filter of its own


def resample(sound: Sound, rate: int) -> Sound:
    """Return a sound at another sampling rate. Raise UserError if it has too many samples there."""
    if sound.rate == rate:
        return sound
    check_count(f"{sound.name}: at {rate:,} Hz", -(-len(sound) * rate // sound.rate))
    values = resample_values(sound.samples.astype(np.float32) / FULL_SCALE, sound.rate, rate)
    return Sound(quantize(values), rate, sound.name, sound.speaker)


def resample_values(values: np.ndarray, old: int, new: int) -> np.ndarray:
    """Return values (T,) at rate `old` as float32 values (N,) at rate `new`.

    Output n is at time n / new. Its value is the sum of the inputs, weighted with a sinc whose
    cutoff is below both Nyquist frequencies. The phases of n repeat after new / gcd outputs.
    """
    divisor = gcd(old, new)
    old, new = old // divisor, new // divisor
    count = -(-len(values) * new // old)
    reach = ceil(ZERO_CROSSINGS * max(1.0, old / new) / ROLLOFF)
    padded = np.pad(values.astype(np.float32, copy=False), (reach, reach + old))
    if new * (old + 2 * reach + 1) <= MAX_BANK:
        bank = _bank(old, new, reach)  # (P, 1, K)
        found = F.conv1d(torch.from_numpy(padded)[None, None], bank, stride=old)[0]  # (P, N / P)
        return found.T.flatten()[:count].numpy()
    out = np.zeros(count, np.float32)
    taps = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1)
    for phase in range(min(new, count)):
        first = phase * old // new
        some = len(range(phase, count, new))
        weights = _weights(np.arange(-reach, reach + 1) - phase * old / new + first, old, new)
        out[phase::new] = taps[first::old][:some] @ weights
    return out


@lru_cache(maxsize=8)
def _bank(old: int, new: int, reach: int) -> torch.Tensor:
    """Return one filter per phase (P, 1, K), each for the inputs around a group of P outputs."""
    taps = np.arange(-reach, old + reach + 1)
    phases = np.arange(new)[:, None] * old / new
    return torch.from_numpy(_weights(taps - phases, old, new))[:, None]


def _weights(distance: np.ndarray, old: int, new: int) -> np.ndarray:
    """Return the weights of inputs at these distances, in input samples, with a Hann window."""
    scale = min(1.0, new / old) * ROLLOFF
    x = distance * scale
    window = np.cos(np.pi * np.clip(x / ZERO_CROSSINGS, -1, 1) / 2) ** 2
    return (scale * np.sinc(x) * window).astype(np.float32)
