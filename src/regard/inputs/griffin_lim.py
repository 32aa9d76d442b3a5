"""Sounds from log-mel features: the inverse of `log_mel`, up to the phases, which are estimated.

T samples, S windows, N length of the Fourier transform, K = N / 2 + 1 frequencies, F bands.
"""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from regard.inputs.log_mel import FLOOR, Analysis, filters, hann

ITERATIONS = 60
MOMENTUM = 0.99
PULLS = 200  # multiplicative updates that invert the mel bands
EPSILON = 1e-12
SEED = 0  # of the first phases
MIN_WEIGHT = 1e-2  # smallest sum of squared windows that samples are divided by


def to_samples(log_mel: np.ndarray, analysis: Analysis, iterations: int = ITERATIONS) -> np.ndarray:
    """Return samples (T,) from -1 to 1 whose log-mel features are about these (S, F).

    Deterministic: the first phases are always the same.
    """
    power = np.exp(np.clip(log_mel.astype(np.float64), np.log(FLOOR), np.log(analysis.size**2)))
    magnitudes = linear_power(power, analysis).sqrt()  # (S, K)
    samples = griffin_lim(magnitudes, analysis, iterations).numpy()
    return samples / max(1.0, float(np.abs(samples).max(initial=0.0)))


def linear_power(power: np.ndarray, analysis: Analysis) -> Tensor:
    """Return the power (S, K) of each frequency, not negative, from that of each band (S, F).

    The nonnegative least squares solution by multiplicative updates (Lee and Seung 2001): each
    keeps all values positive and does not increase the squared error.
    """
    bank = torch.from_numpy(filters(analysis.rate, analysis.size, analysis.bands)).double()
    goal = torch.from_numpy(power)
    found = (goal / bank.sum(0)) @ bank.t()  # (S, K)
    rising, product = goal @ bank.t(), bank @ bank.t()
    for _ in range(PULLS):
        found = found * rising / (found @ product + EPSILON)
    return found.float()


def griffin_lim(magnitudes: Tensor, analysis: Analysis, iterations: int = ITERATIONS) -> Tensor:
    """Return samples (T,) whose short-time Fourier transform has about these magnitudes (S, K).

    Each iteration takes the phases of the sound that the last one made (Griffin and Lim 1984), with
    momentum (Perraudin et al. 2013).
    """
    generator = torch.Generator().manual_seed(SEED)
    angles = torch.rand(magnitudes.shape, generator=generator) * (2 * np.pi)
    spectrum = torch.polar(magnitudes, angles)
    before = torch.zeros_like(spectrum)
    for _ in range(iterations):
        again = transform(overlap_add(spectrum, analysis), analysis)
        faster = again + MOMENTUM * (again - before)
        spectrum = magnitudes * faster / faster.abs().clamp(min=EPSILON)
        before = again
    return overlap_add(spectrum, analysis)


def transform(samples: Tensor, analysis: Analysis) -> Tensor:
    """Return the short-time Fourier transform (S, K) of samples (T,)."""
    windows = samples.unfold(0, analysis.length, analysis.hop) * hann(analysis.length)
    return torch.fft.rfft(windows, analysis.size)


def overlap_add(spectrum: Tensor, analysis: Analysis) -> Tensor:
    """Return the samples (T,) whose windows are closest to those of a spectrum (S, K).

    The least squares solution: windowed parts are added, and divided by the sum of the squared
    windows (Griffin and Lim 1984, eq. 6).
    """
    length = analysis.length
    parts = torch.fft.irfft(spectrum, analysis.size)[:, :length] * hann(length)
    return _added(parts, analysis.hop) / _weights(len(spectrum), length, analysis.hop)


def _added(parts: Tensor, hop: int) -> Tensor:
    """Return the sum (T,) of parts (S, length), each `hop` samples after the previous one."""
    count, length = parts.shape
    total = (count - 1) * hop + length
    columns = parts.t().unsqueeze(0)  # (1, length, S)
    found = torch.nn.functional.fold(columns, (1, total), (1, length), stride=(1, hop))
    return found.flatten()


@lru_cache(maxsize=64)
def _weights(count: int, length: int, hop: int) -> Tensor:
    """Return the sum of the squared windows at each sample (T,)."""
    squares = hann(length).square().expand(count, -1)
    return _added(squares, hop).clamp(min=MIN_WEIGHT)
