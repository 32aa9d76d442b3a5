"""Plot of position tables before and after a short training.

Shapes: n positions, D width.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.views.figures.style import (
    COLORS,
    FAINT,
    INK,
    add_subtitle,
    hide_frame,
    new_figure,
)
from regard.views.plots.number_task import (
    LENGTH,
    SHIFT,
    WIDTH,
    NumberModel,
    held_out_error,
    shifted,
    train,
)
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = ("none", "sinusoidal", "learned", "floater")
SHOWN = 2 * LENGTH  # positions of the tables
TRAINED_LENGTHS = (8, 16, 24, 32)
TESTED_LENGTHS = (8, 16, 24, 32, 36, 40, 48, 56, 64)
STEPS = 500


def built(kind: str) -> NumberModel:
    """Return a new model with these positions; a learned table has rows beyond the training."""
    torch.manual_seed(0)
    length = {"length": SHOWN} if kind == "learned" else {}
    return NumberModel(positions={"kind": kind, **length})


@torch.no_grad()
def position_table(model: NumberModel) -> Tensor:
    """Return what the encoding adds before the first layer (n, D)."""
    return model.encoder.positions.embed(torch.zeros(1, SHOWN, WIDTH), 0)[0]


def plot_tables(args: PlotArgs) -> "Figure":
    """Plot tables before and after training, and the error over the length of the input."""
    figure = new_figure(12.0, 6.6, "Position tables before and after a short training")
    grid = figure.add_gridspec(2, 5, height_ratios=[1.5, 1])
    tables, errors = {}, {}
    for kind in KINDS:
        model = built(kind)
        before = position_table(model)
        train(model, shifted, STEPS, lengths=TRAINED_LENGTHS)
        tables[kind] = before, position_table(model)
        errors[kind] = [held_out_error(model, shifted, n) for n in TESTED_LENGTHS]
    (sinusoids, _), (new, learned) = tables["sinusoidal"], tables["learned"]
    solved = tables["floater"][1]
    shown = {
        "sinusoidal": (sinusoids, "floater starts with it"),
        "learned, new": (new, "random"),
        "learned, trained": (learned, f"random from {LENGTH} on"),
        "floater, trained": (solved, "sinusoids + p"),
        "p alone": (solved - sinusoids, "solution of dp/dt = h(t, p)"),
    }
    for column, (name, (table, about)) in enumerate(shown.items()):
        axes = figure.add_subplot(grid[0, column])
        _plot_table(axes, table)
        axes.set_title(name, pad=14)
        add_subtitle(axes, about)
        if column == 0:
            axes.set_ylabel("position")
    _plot_errors(figure.add_subplot(grid[1, :]), errors)
    return figure


def _plot_table(axes: "Axes", table: Tensor) -> None:
    """Plot a table, with a line after the last position of the training."""
    axes.imshow(table.numpy(), cmap="RdBu_r", vmin=-1.5, vmax=1.5, aspect="auto")
    axes.axhline(LENGTH - 0.5, color=INK, linewidth=1, linestyle=(0, (4, 1.5)))
    axes.set_xlabel("dimension")
    axes.set_yticks([0, LENGTH, SHOWN - 1])
    hide_frame(axes)


def _plot_errors(axes: "Axes", errors: dict[str, list[float]]) -> None:
    """Plot the error of each kind over the length of the input."""
    for (kind, values), color in zip(errors.items(), COLORS, strict=False):
        axes.plot(TESTED_LENGTHS, values, "o-", markersize=3, color=color, label=kind)
    axes.axvline(LENGTH, color=FAINT, linewidth=1, linestyle=(0, (4, 1.5)))
    axes.text(LENGTH - 0.3, 1.25, "training", ha="right", fontsize=8, color=FAINT)
    axes.text(LENGTH + 0.3, 1.25, "longer inputs", fontsize=8, color=FAINT)
    axes.set_title(f"Error over the length: the number {SHIFT} positions before", pad=14)
    add_subtitle(axes, "squared, relative to an output of zeros")
    axes.set_xlabel("positions of the input")
    axes.set_xticks(TESTED_LENGTHS)
    axes.set_ylim(-0.03, 1.4)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
