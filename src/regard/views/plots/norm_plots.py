"""Plots of norms: what they average over, and gradients and the residual stream by layer."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.core.options import kinds_of
from regard.data.tensors.padded import Padded
from regard.models.transformer_options import TransformerEncoderOptions
from regard.nn.capture_hooks import recording
from regard.nn.norms import Norm
from regard.nn.norms.batch import BatchNorm
from regard.nn.norms.vector import LayerNorm
from regard.nn.residual import NormPosition
from regard.optim.init import XavierUniform
from regard.views.figures.style import (
    COLORS,
    FAINT,
    GRID,
    PAPER,
    add_subtitle,
    hide_frame,
    new_figure,
    panels,
    select_kinds,
)
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SENTENCES = (("we", "saw", "a", "cat"), ("it", "slept"), ("so", "we", "left"))
FEATURES, SHOWN = (
    4,
    (0, 1, 2),
)  # features per token; the number that is followed: row, token, feature
LAYERS, WIDTH, ROWS, LENGTH = 12, 64, 16, 20
PLACES: dict[str, Any] = kinds_of(NormPosition)


def averaged_over(norm: Norm) -> Tensor:
    """Return which inputs (B, T, D) change the output at `SHOWN`, as booleans."""
    torch.manual_seed(0)
    x = torch.randn(len(SENTENCES), max(map(len, SENTENCES)), FEATURES, requires_grad=True)
    norm(x, _real())[SHOWN].backward()
    assert x.grad is not None
    return x.grad != 0


def _real() -> Tensor:
    """Return which positions (B, T) are not padding."""
    lengths = torch.tensor([len(words) for words in SENTENCES])
    return torch.arange(int(lengths.max())) < lengths[:, None]


def plot_norm_axes(args: PlotArgs) -> "Figure":
    """Plot which numbers of a padded batch layer norm and batch norm average over."""
    figure = new_figure(9.2, 3.4, "What a norm averages over, in a padded batch")
    left, right = panels(figure, 1, 2)
    _plot_cells(left, averaged_over(LayerNorm(FEATURES)))
    left.set_title("Layer norm", pad=14)
    add_subtitle(left, "the features of one position: other sentences and padding do not matter")
    _plot_cells(right, averaged_over(BatchNorm(FEATURES, 0.1)))
    right.set_title("Batch norm, PowerNorm", pad=14)
    add_subtitle(right, "one feature at all real positions of the batch, in training")
    return figure


def _plot_cells(axes: "Axes", used: Tensor) -> None:
    """Plot tokens as columns of features: dark if used, hatched if padding, framed if followed."""
    from matplotlib.patches import Rectangle

    real = _real()
    for row, token, feature in torch.cartesian_prod(*map(torch.arange, used.shape)).tolist():
        corner = (1.3 * token, -1.25 * row - (feature + 1) / FEATURES)
        is_real, is_used = bool(real[row, token]), bool(used[row, token, feature])
        style: dict[str, Any] = {"facecolor": COLORS[0] if is_used else GRID, "edgecolor": PAPER}
        if not is_real:
            style = {"facecolor": "none", "edgecolor": GRID, "hatch": "////"}
        axes.add_patch(Rectangle(corner, 1, 1 / FEATURES, linewidth=1.2, **style))
        if (row, token, feature) == SHOWN:
            frame: dict[str, Any] = {"facecolor": "none", "edgecolor": COLORS[1], "zorder": 3}
            axes.add_patch(Rectangle(corner, 1, 1 / FEATURES, linewidth=2.2, **frame))
    for row, words in enumerate(SENTENCES):
        for token in range(used.shape[1]):
            word = words[token] if token < len(words) else "<pad>"
            spot = (1.3 * token + 0.5, -1.25 * row - 1.02)
            axes.text(*spot, word, ha="center", va="top", fontsize=8, color=FAINT)
    axes.set_xlim(-0.1, 1.3 * used.shape[1])
    axes.set_ylim(-1.25 * len(SENTENCES) - 0.05, 0.1)
    axes.set_xticks([])
    axes.set_yticks([])
    hide_frame(axes)


def at_the_start(place: str, connected: bool = True) -> tuple[list[float], list[float]]:
    """Return, by layer, the gradient norm of the last matrix, and the size of the stream.

    The model is a new encoder (Xavier) with random inputs; the loss is the squared distance of its
    output to random vectors. The size is the root mean square.
    """
    torch.manual_seed(0)
    encoder: Any = TransformerEncoderOptions(
        layers=LAYERS,
        width=WIDTH,
        heads=4,
        feedforward_width=4 * WIDTH,
        dropout=0.0,
        norm_position=place,
        residual=connected,
    ).build()
    XavierUniform().apply(encoder)
    x, target = torch.randn(2, ROWS, LENGTH, WIDTH)
    with recording(encoder) as seen:
        out = encoder(Padded(x, torch.ones(ROWS, LENGTH, dtype=torch.bool))).data
    (out - target).square().mean().backward()
    slopes = [float(layer.feedforward.narrow.weight.grad.norm()) for layer in encoder.layers]
    sizes = [
        float(calls[0].detach().square().mean().sqrt()) for calls in seen.hidden.calls.values()
    ]
    return slopes, sizes


def plot_norm_gradients(args: PlotArgs) -> "Figure":
    """Plot gradient norms and the size of the residual stream by layer, in a new model."""
    from matplotlib.ticker import LogFormatter

    names = select_kinds(args.kinds, [*PLACES, "no residual"])
    figure = new_figure(9.2, 3.6, f"A new Transformer encoder with {LAYERS} layers")
    left, right = panels(figure, 1, 2)
    for name, color in zip(names, COLORS, strict=False):
        known = name in PLACES
        slopes, sizes = at_the_start(name if known else "pre", known)
        for axes, values in ((left, slopes), (right, sizes)):
            axes.plot(range(1, LAYERS + 1), values, "o-", markersize=3, color=color, label=name)
    for axes, title in ((left, "Gradient norm"), (right, "Size of the residual stream")):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(LogFormatter(minor_thresholds=(2, 0.4)))
        axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.4)))
        axes.set_xlabel("layer")
        axes.set_title(title, pad=14)
    add_subtitle(left, "of the last feed-forward matrix of each layer")
    add_subtitle(right, "root mean square of the output of each layer")
    right.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
