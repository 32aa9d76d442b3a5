"""Plot of a sound: waveform, the sliding window, and features, on one time axis."""

from typing import TYPE_CHECKING

import numpy as np

from regard.data.reading.sound_files import read_sound
from regard.data.reading.sounds import Sound
from regard.inputs.sound_options import Sounds
from regard.inputs.sounds import SoundInput
from regard.views.figures.sound_panels import envelope, mark_window, plot_features, plot_waveform
from regard.views.figures.style import FAINT, new_figure
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_SECONDS = 10.0  # that are plotted


def plot_sound(args: PlotArgs) -> "Figure":
    """Plot the sound in a file, by default an artificial one."""
    sound = example() if args.run is None else read_sound(str(args.run))
    shown = sound.samples[: round(MAX_SECONDS * sound.rate)]
    sound = Sound(shown, sound.rate, sound.name)
    made, _ = Sounds().fit([sound], "task.source", [])
    assert isinstance(made, SoundInput)
    analysis, features = made.analysis, made.analyze(sound)
    window, step = analysis.length / analysis.rate, analysis.hop / analysis.rate
    figure = new_figure(9.0, 6.2, f"{sound.name}: {len(features):,} windows")
    top, middle, below = figure.subplots(3, 1, gridspec_kw={"height_ratios": [1, 1, 1.9]})
    plot_waveform(top, envelope(sound.samples), sound.seconds)
    start = loudest(features) * step
    first, last = max(0.0, start - 2 * window), start + 4 * window
    plot_waveform(middle, *_part(sound, first, last))
    middle.set_xlim(0, last - first)
    ticks = np.linspace(0, last - first, 7)
    middle.set_xticks(ticks, [f"{first + tick:.3f}" for tick in ticks])
    mark_window(middle, start - first, window, step)
    middle.set_title(f"a window of {1000 * window:g} ms, and the next one", fontsize=9, color=FAINT)
    top.axvspan(first, last, color=FAINT, alpha=0.2, linewidth=0)
    hertz = float(made.analysis.rate) / 2
    plot_features(below, features, (20.0, hertz), window, step)
    below.set_title(f"log power in {analysis.bands} mel bands", fontsize=9, color=FAINT)
    for panel in (top, below):
        panel.set_xlim(0, sound.seconds)
    below.set_xlabel("seconds")
    return figure


def _part(sound: Sound, first: float, last: float) -> tuple[np.ndarray, float]:
    """Return the waveform between two times, and its duration."""
    samples = sound.samples[round(first * sound.rate) : round(last * sound.rate)]
    return envelope(samples), len(samples) / sound.rate


def loudest(features: np.ndarray) -> int:
    """Return the window with the most power in all bands, away from the ends if possible."""
    return int(features.sum(1).argmax())


def example() -> Sound:
    """Return two syllables of an artificial voice: pulses through two moving resonances."""
    rate, seconds = 8000, 0.8
    time = np.arange(round(rate * seconds)) / rate
    pitch = 120 + 30 * np.sin(2 * np.pi * 1.5 * time)
    phase = np.cumsum(pitch) / rate
    voice = np.zeros_like(time)
    low, high = 450 + 250 * np.sin(7 * time), 1600 + 700 * np.cos(9 * time)
    for harmonic in range(1, 26):
        hertz = harmonic * pitch
        gain = np.exp(-(((hertz - low) / 120) ** 2)) + 0.6 * np.exp(-(((hertz - high) / 180) ** 2))
        voice += (gain + 0.02) * np.sin(2 * np.pi * harmonic * phase)
    loud = np.clip(np.sin(2 * np.pi * time / seconds * 2 - 0.3), 0.0, None) ** 0.5
    noise = np.random.default_rng(0).normal(0, 0.004, len(time))
    wave = voice * loud
    return Sound(
        np.rint((0.7 * wave / np.abs(wave).max() + noise) * 30000).astype(np.int16),
        rate,
        "an artificial voice",
    )
