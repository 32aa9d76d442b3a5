"""Figure of a sound: waveform, features, and what the output attends to, on one time axis."""

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.views.figures.fonts import FontSet
from regard.views.figures.sound_panels import plot_features, plot_waveform
from regard.views.figures.style import COLORS, FAINT, new_figure
from regard.views.inspection.figure_maps import COLORMAP
from regard.views.inspection.sound_view import times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCHES_PER_SECOND, MIN_WIDTH, MAX_WIDTH = 6.0, 6.5, 14.0
ROW = 0.24  # inches per output token


def features_of(sound: dict[str, Any]) -> np.ndarray:
    """Return the features (S, F) of a sound in an inspection, as bytes."""
    flat = np.frombuffer(base64.b64decode(sound["features"]["u8"]), np.uint8)
    return flat.reshape(sound["features"]["shape"])


def plot_sound(title: str, inspection: dict[str, Any], fonts: FontSet) -> "Figure":
    """Return a figure of waveform, features and, below them, the time of the outputs."""
    sound = inspection["sound"]
    rows, plot_below = below(inspection)
    width = min(MAX_WIDTH, max(MIN_WIDTH, 1.2 + INCHES_PER_SECOND * sound["seconds"]))
    heights = [1.0, 1.9, *([max(0.7, ROW * rows)] if rows else [])]
    figure = new_figure(width, sum(heights) + 1.3, title)
    panels = figure.subplots(
        len(heights), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights}
    )[:, 0]
    plot_waveform(panels[0], np.asarray(sound["waveform"]), sound["seconds"])
    plot_features(
        panels[1], features_of(sound), tuple(sound["hertz"]), sound["window"], sound["step"]
    )
    if rows:
        plot_below(panels[2], inspection, fonts)
    panels[-1].set_xlabel("seconds")
    panels[-1].set_xlim(0, sound["seconds"])
    return figure


def below(inspection: dict[str, Any]) -> tuple[int, Any]:
    """Return the rows of the last panel, 0 without one, and the function that plots it."""
    if cross_attention(inspection) is not None:
        return len(inspection["steps"]), _plot_attention
    if frames_per_position(inspection):
        return 4, _plot_frames
    if inspection["saliency"]:
        return 3, _plot_saliency
    return 0, None


def cross_attention(inspection: dict[str, Any]) -> np.ndarray | None:
    """Return the mean (tokens, positions) of the heads of the last cross-attention, if any."""
    found = [one for one in inspection["attention"] if one["part"] == "cross"]
    return np.mean(found[-1]["heads"], 0) if found else None


def frames_per_position(inspection: dict[str, Any]) -> int:
    """Return the CTC frames per position of the model; 0 if its outputs are not frames."""
    positions, steps = len(inspection["source"]["tokens"]), len(inspection["steps"])
    is_frames = not cross_attention_parts(inspection) and len(inspection["inputs"]) == steps
    return steps // positions if is_frames and positions > 1 and steps >= positions else 0


def cross_attention_parts(inspection: dict[str, Any]) -> bool:
    """Return whether any attention is from the output to the source."""
    return any(one["part"] == "cross" for one in inspection["attention"])


def _plot_attention(axes: "Axes", inspection: dict[str, Any], fonts: FontSet) -> None:
    """Plot the attention of each output token over time."""
    from matplotlib.colors import LinearSegmentedColormap

    weights, sound = cross_attention(inspection), inspection["sound"]
    assert weights is not None
    at = times(sound, weights.shape[1])
    half = sound["step"] * sound["stride"] / 2
    colors = LinearSegmentedColormap.from_list("attention", COLORMAP)
    extent = (at[0] - half, at[-1] + half, len(weights) - 0.5, -0.5)
    axes.imshow(weights, aspect="auto", cmap=colors, extent=extent, interpolation="nearest", vmin=0)
    labels = [fonts.label(step["token"]) for step in inspection["steps"]]
    axes.set_yticks(range(len(labels)), labels)
    axes.grid(False)


def _plot_frames(axes: "Axes", inspection: dict[str, Any], fonts: FontSet) -> None:
    """Plot the probability of each frame that is a token, with the token once per run of frames."""
    positions, per = len(inspection["source"]["tokens"]), frames_per_position(inspection)
    at = times(inspection["sound"], positions, per)
    steps = inspection["steps"]
    runs = runs_of([step["token"] for step in steps])
    names = [name for name, _, _ in runs]
    blank = "·" if "·" in names else ""
    axes.set_ylim(0, 1.35)
    axes.set_yticks([0, 0.5, 1])
    axes.set_ylabel("probability")
    width = inspection["sound"]["step"] * inspection["sound"]["stride"] / per
    for name, first, last in runs:
        values = [steps[i]["probability"] for i in range(first, last)]
        color = FAINT if name == blank else COLORS[1]
        alpha = 0.25 if name == blank else 0.9
        axes.bar(at[first:last], values, width, color=color, alpha=alpha, linewidth=0)
        if name != blank:
            axes.text(at[first:last].mean(), 1.05, fonts.label(name), ha="center", fontsize=9)


def runs_of(tokens: list[str]) -> list[tuple[str, int, int]]:
    """Return each run of equal tokens with its first index and the index after its last one."""
    found: list[tuple[str, int, int]] = []
    for index, token in enumerate(tokens):
        if found and found[-1][0] == token:
            found[-1] = (token, found[-1][1], index + 1)
        else:
            found.append((token, index, index + 1))
    return found


def _plot_saliency(axes: "Axes", inspection: dict[str, Any], fonts: FontSet) -> None:
    """Plot the saliency of each position over time, one line per part of the output."""
    sound = inspection["sound"]
    values = np.asarray(inspection["saliency"]["values"], np.float64)
    labels = [fonts.label(step["token"]) for step in inspection["steps"]]
    for index, row in enumerate(values[:8]):
        name = labels[index] if len(labels) == len(values) else ""
        axes.plot(times(sound, len(row)), row, color=COLORS[index % len(COLORS)], label=name)
    axes.set_ylabel("saliency")
    axes.legend(loc="upper right", fontsize=8)
