"""Panels of figures of sounds: waveform and features over the same time axis."""

from typing import TYPE_CHECKING

import numpy as np

from regard.views.figures.style import COLORS, FAINT, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORMAP = "magma"
MAX_COLUMNS = 800  # of a waveform
MEL_TICKS = (100, 300, 1000, 2000, 4000, 8000)  # Hz


def envelope(samples: np.ndarray, columns: int = MAX_COLUMNS) -> np.ndarray:
    """Return minimum and maximum (n, 2) of each of n parts of samples (T,), from -1 to 1."""
    bounds = np.linspace(0, len(samples), min(columns, len(samples)) + 1).astype(int)[:-1]
    low, high = np.minimum.reduceat(samples, bounds), np.maximum.reduceat(samples, bounds)
    return np.round(np.stack([low, high], 1) / 32768, 4)


def plot_waveform(axes: "Axes", waveform: np.ndarray, seconds: float) -> None:
    """Plot minima and maxima (n, 2) of parts of a sound."""
    at = (np.arange(len(waveform)) + 0.5) * seconds / len(waveform)
    axes.fill_between(at, waveform[:, 0], waveform[:, 1], color=COLORS[0], linewidth=0.4)
    top = max(0.05, 1.1 * float(np.abs(waveform).max()))
    axes.set_ylim(-top, top)
    axes.set_ylabel("amplitude")
    axes.grid(False)


def plot_features(
    axes: "Axes", features: np.ndarray, hertz: tuple[float, float], window: float, step: float
) -> None:
    """Plot features (S, F) over time and frequency. hertz: of the lowest and highest band edge."""
    low, high = (2595 * np.log10(1 + value / 700) for value in hertz)
    start = window / 2 - step / 2  # the middle of the first window, minus half a step
    extent = (start, start + len(features) * step, low, high)
    axes.imshow(
        features.T,
        origin="lower",
        aspect="auto",
        cmap=COLORMAP,
        extent=extent,
        interpolation="nearest",
    )
    ticks = [tick for tick in MEL_TICKS if hertz[0] <= tick <= hertz[1]]
    axes.set_yticks([2595 * np.log10(1 + tick / 700) for tick in ticks], [f"{t:,}" for t in ticks])
    axes.set_ylabel("Hz")
    axes.grid(False)


def mark_window(axes: "Axes", start: float, window: float, step: float) -> None:
    """Mark one window and the start of the next one."""
    axes.axvspan(start, start + window, color=COLORS[1], alpha=0.3, linewidth=0)
    axes.axvline(start + step, color=INK, linewidth=0.7, linestyle=(0, (3, 2)))
    axes.axvspan(start + step, start + step + window, color=FAINT, alpha=0.12, linewidth=0)
