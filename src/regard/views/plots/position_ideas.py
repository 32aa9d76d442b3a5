"""Plots that explain positions: a shuffled sentence, and sinusoids that shift by a rotation."""

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.data.tensors.padded import Padded
from regard.models.transformer_options import TransformerEncoderOptions
from regard.nn.positions.sinusoidal import sinusoids
from regard.views.figures.style import (
    COLORS,
    FAINT,
    add_subtitle,
    hide_frame,
    new_figure,
    panels,
)
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SENTENCE, SHUFFLE = ("dog", "bites", "man"), (2, 1, 0)
WIDTH, SHOWN_VALUES = 32, 12
LENGTH, COLUMNS, PAIRS, SHIFT, SHOWN_POSITIONS = 96, (2, 6, 12, 20), (1, 2, 3), 4, 10


def plot_position_order(args: PlotArgs) -> "Figure":
    """Plot the outputs of an encoder for a sentence and its shuffle, with and without positions."""
    figure = new_figure(9.2, 3.5, "Without positions, attention knows no order")
    axes = panels(figure, 2, 2)
    shuffled = tuple(SENTENCE[i] for i in SHUFFLE)
    for row, kind in enumerate(("none", "sinusoidal")):
        first, second = encode_both(kind)
        size = float(first.abs().max())
        for column, (words, found) in enumerate(((SENTENCE, first), (shuffled, second))):
            panel = axes[2 * row + column]
            panel.imshow(found[:, :SHOWN_VALUES], cmap="RdBu_r", vmin=-size, vmax=size)
            panel.set_yticks(range(len(words)), words)
            panel.set_xticks([])
            panel.set_title(f"positions: {kind}", pad=14)
            hide_frame(panel)
            moved = float((second - first[list(SHUFFLE)]).abs().max())
            same = (
                "the same rows, shuffled" if moved < 1e-5 else f"rows differ by up to {moved:.2f}"
            )
            about = same if column else f"{SHOWN_VALUES} of {WIDTH} output values per word"
            add_subtitle(panel, about)
    return figure


@torch.no_grad()
def encode_both(kind: str) -> tuple[Tensor, Tensor]:
    """Return the outputs (T, D) of a random encoder for random words and for their shuffle."""
    torch.manual_seed(0)
    sizes = {"width": WIDTH, "heads": 4, "layers": 2, "feedforward_width": 64, "dropout": 0.0}
    options = TransformerEncoderOptions.model_validate({**sizes, "positions": kind})
    encoder = options.build().eval()
    words = torch.randn(len(SENTENCE), WIDTH)
    rows = torch.stack([words, words[list(SHUFFLE)]])
    found = encoder(Padded(rows, torch.ones(rows.shape[:2], dtype=torch.bool))).data
    return found[0], found[1]


def plot_position_shift(args: PlotArgs) -> "Figure":
    """Plot columns of the sinusoidal table, and pairs of columns as points on a circle."""
    table = sinusoids(LENGTH, WIDTH)
    figure = new_figure(10.4, 5.2, "A shift of sinusoidal positions is a rotation")
    grid = figure.add_gridspec(2, len(PAIRS), height_ratios=[2, 3])
    curves = figure.add_subplot(grid[0, :])
    for column, color in zip(COLUMNS, COLORS, strict=False):
        curves.plot(table[:, column], color=color, label=f"dimension {column}")
    curves.set_xlabel("position")
    curves.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    for index, pair in enumerate(PAIRS):
        _plot_pair(figure.add_subplot(grid[1, index]), table, pair)
    return figure


def _plot_pair(axes: "Axes", table: Tensor, pair: int) -> None:
    """Plot one pair of dimensions by position, with arcs from i to i + SHIFT."""
    angle = SHIFT / 10000 ** (2 * pair / WIDTH)
    points = table[:, 2 * pair : 2 * pair + 2].flip(1)  # cosine to the right, sine up
    circle = torch.linspace(0, 2 * math.pi, 200)
    axes.plot(circle.cos(), circle.sin(), color=FAINT, linewidth=0.6)
    axes.plot(*points[:SHOWN_POSITIONS].T, "o", color=COLORS[0], markersize=4)
    for position in range(SHOWN_POSITIONS):
        x, y = (1.14 * points[position]).tolist()
        axes.text(x, y, str(position), fontsize=7, ha="center", va="center", color=FAINT)
    for number, start in enumerate((0, 5)):
        first = math.atan2(float(points[start, 1]), float(points[start, 0]))
        arc = torch.linspace(first, first + angle, 50)
        radius = 0.85 - 0.18 * number
        color = COLORS[1 + number]
        axes.plot(
            radius * arc.cos(), radius * arc.sin(), color=color, label=f"{start} → {start + SHIFT}"
        )
    axes.set_aspect("equal")
    axes.set_xlim(-1.3, 1.3)
    axes.set_ylim(-1.3, 1.3)
    hide_frame(axes)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(f"dimensions {2 * pair} and {2 * pair + 1}", pad=14)
    add_subtitle(axes, f"{SHIFT} positions further: {math.degrees(angle):.1f}°, wherever it starts")
    axes.legend(fontsize=8, loc="center")
