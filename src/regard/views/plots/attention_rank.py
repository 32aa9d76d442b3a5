"""Plot of the rank of trained attention maps, and of what low-rank approximations lose.

Shapes: B rows, n positions, r rank.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.views.figures.style import (
    COLORS,
    FAINT,
    GRID,
    add_subtitle,
    hide_frame,
    new_figure,
    panels,
)
from regard.views.plots.number_task import (
    HELD_OUT,
    LENGTH,
    LETTERS,
    NumberModel,
    Task,
    attention_maps,
    examples,
    held_out_error,
    mean_of_letter,
    mirrored,
    train,
)
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TASKS: dict[str, tuple[Task, str]] = {
    "mean": (mean_of_letter, f"mean number of its letter, of {LETTERS}"),
    "mirror": (mirrored, "number at the mirrored position"),
}
RANKS = (4, 8, 12, 16, 20, 24, 28, 32)
STEPS, LINFORMER_STEPS, LINFORMER_LR = 400, 150, 3e-3


def trained(task: Task) -> NumberModel:
    """Return a model with softmax attention after a short training."""
    torch.manual_seed(0)
    return train(NumberModel(), task, STEPS)


def cumulative_share(maps: Tensor) -> Tensor:
    """Return which fraction of their sum the first singular values have (n,), mean of all maps."""
    values = torch.linalg.svdvals(maps)
    return (values.cumsum(-1) / values.sum(-1, keepdim=True)).mean(0)


def best_error(maps: Tensor) -> Tensor:
    """Return the squared error of the best approximation of each rank from 0 to n (n + 1,).

    It is relative to the squares of the weights: the singular values that are not used.
    """
    squares = torch.linalg.svdvals(maps).square()
    squares = squares / squares.sum(-1, keepdim=True)
    used = torch.cat([torch.zeros(len(maps), 1), squares.cumsum(-1)], -1)
    return (1 - used).clamp(min=0).mean(0)


def as_linformer(model: NumberModel, rank: int) -> NumberModel:
    """Return a model with the same weights and Linformer attention, whose slots are means.

    With as many slots as positions, E and F are the identity, and the model computes the same.
    """
    attention = {"kind": "linformer", "length": LENGTH, "rank": rank, "shared": False}
    found = NumberModel(attention=attention)
    slots = (torch.arange(LENGTH) * rank // LENGTH == torch.arange(rank)[:, None]).float()
    slots /= slots.sum(-1, keepdim=True)
    kernel = "encoder.layers.0.attention.kernel."
    weights = {f"{kernel}keys": slots, f"{kernel}values": slots.clone()}
    found.load_state_dict(model.state_dict() | weights)
    return found


def plot_rank(args: PlotArgs) -> "Figure":
    """Plot attention maps of two tasks, their singular values, and errors over the rank."""
    figure = new_figure(12.6, 3.7, "Attention maps of low and of full rank, after a short training")
    *maps, shares, errors = panels(figure, 1, 4, width_ratios=[1, 1, 1.3, 1.5])
    for axes, (name, (task, about)), color in zip(maps, TASKS.items(), COLORS, strict=False):
        model = trained(task)
        batch = examples(task, HELD_OUT)
        weights = attention_maps(model, batch)
        order = batch.letters[0].argsort(stable=True)
        shown = weights[0][order][:, order] if name == "mean" else weights[0]
        _plot_map(axes, shown)
        axes.set_title(name, pad=14, color=color)
        add_subtitle(axes, about)
        axes.set_xlabel("positions, sorted by letter" if name == "mean" else "positions")
        shares.plot(range(1, LENGTH + 1), cumulative_share(weights), color=color, label=name)
        errors.plot(range(LENGTH + 1), best_error(weights), color=color, label=f"best, {name}")
        found = [linformer_error(model, task, rank) for rank in RANKS]
        dashed: dict[str, Any] = {"linestyle": (0, (4, 1.5)), "marker": "o", "markersize": 3}
        errors.plot(RANKS, found, color=color, label=f"linformer, {name}", **dashed)
    shares.plot([0, LENGTH], [0, 1], color=FAINT, linewidth=1, linestyle=(0, (1, 2)))
    shares.set_title("Sum of the largest r values", pad=14)
    add_subtitle(shares, f"singular values, fraction of all {LENGTH}")
    errors.set_title("Error over the rank r", pad=14)
    add_subtitle(errors, "relative squares: of the map (best), of the output (linformer)")
    for axes in (shares, errors):
        axes.set_xlabel("rank r")
        axes.set_xticks(range(0, LENGTH + 1, 8))
        axes.set_ylim(-0.02, 1.04)
        axes.legend(fontsize=8)
    return figure


def linformer_error(model: NumberModel, task: Task, rank: int) -> float:
    """Return the error of a model after its attention becomes Linformer and is trained again."""
    found = train(as_linformer(model, rank), task, LINFORMER_STEPS, LINFORMER_LR)
    return held_out_error(found, task)


def _plot_map(axes: "Axes", weights: Tensor) -> None:
    """Plot an attention matrix; darker cells have larger weights."""
    from matplotlib.colors import LinearSegmentedColormap

    colors = LinearSegmentedColormap.from_list("weights", [GRID, COLORS[0]])
    axes.imshow(weights.numpy(), cmap=colors, vmin=0, vmax=float(weights.max()))
    hide_frame(axes)
    axes.set_xticks([])
    axes.set_yticks([])
