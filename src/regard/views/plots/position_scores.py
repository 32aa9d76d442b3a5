"""Plot of what each positional encoding contributes to attention scores."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.core.options import kinds_of
from regard.nn.positions import Position, Positions
from regard.views.figures.style import (
    COLORS,
    add_subtitle,
    hide_frame,
    new_figure,
    panels,
    select_kinds,
)
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LENGTH, WIDTH, HEADS, COLUMNS = 64, 64, 4, 4
KINDS: dict[str, Any] = kinds_of(Positions)
ABOUT = {
    "sinusoidal": "p_i . p_j",
    "learned": "p_i . p_j, initially random",
    "none": "nothing",
    "relative": "q . r(j - i), initially random",
    "t5": "b(j - i), initially random",
    "rotary": "q, k rotated by i, j",
    "alibi": "-slope |j - i|",
    "floater": "p_i . p_j, random dp/dt",
}


@torch.no_grad()
def position_scores(position: Position) -> Tensor:
    """Return the scores (H, T, T) of queries and keys that differ only in their positions.

    Content is a vector of ones for rotations and biases, and zero for vectors that are added.
    """
    at = torch.arange(LENGTH)
    same = torch.ones(1, HEADS, LENGTH, WIDTH // HEADS)
    if position.biases:
        bias = position.bias(same, at, at[None])
        assert bias is not None
        return bias[0]
    if position.rotates:
        q, k = position.rotate(same, same, 0)
        return (q @ k.transpose(-2, -1))[0] / (WIDTH // HEADS)
    p = position.embed(torch.zeros(1, LENGTH, WIDTH), 0)[0]  # (T, D)
    return (p @ p.T / WIDTH)[None]


def built(kind: str) -> Position:
    """Return an encoding with weights of the size that training gives them."""
    torch.manual_seed(2)
    position: Position = KINDS[kind]().build(WIDTH, HEADS)
    if position.every_layer:  # its derivative starts at zero
        with torch.no_grad():
            for weight in position.parameters():
                weight.add_(0.02 * torch.randn(weight.shape))
    return position


def plot_position_scores(args: PlotArgs) -> "Figure":
    """Plot the part of attention scores that comes from positions, as maps and by distance."""
    names = select_kinds(args.kinds, list(KINDS))
    columns = min(COLUMNS, len(names))
    rows = -(-len(names) // columns)
    title = "What positions add to attention scores"
    figure = new_figure(max(4.6, 2.4 * columns), 4.3 * rows + 0.4, title)
    axes = panels(figure, 2 * rows, columns, height_ratios=[3, 2] * rows)
    middle = LENGTH // 2
    for index, name in enumerate(names):
        first = index + index // columns * columns  # every second row has curves
        map_axes, curve_axes = axes[first], axes[first + columns]
        scores = position_scores(built(name))
        size = float(scores[0].abs().max()) or 1.0
        map_axes.imshow(scores[0].numpy(), cmap="RdBu_r", vmin=-size, vmax=size)
        hide_frame(map_axes)
        map_axes.set_title(name, pad=14)
        add_subtitle(map_axes, ABOUT[name])
        map_axes.set_xlabel("key j")
        for head, row in enumerate(scores[:, middle]):
            curve_axes.plot(torch.arange(LENGTH) - middle, row, color=COLORS[head], linewidth=1.3)
        curve_axes.set_xlabel("j - i")
        if index % columns == 0:
            map_axes.set_ylabel("query i")
            curve_axes.set_ylabel("score, per head")
    for index in range(len(names), rows * columns):
        first = index + index // columns * columns
        for unused in (axes[first], axes[first + columns]):
            unused.set_axis_off()
    return figure
