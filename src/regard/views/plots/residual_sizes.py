"""Plot of the size of the residual stream and of each branch, layer by layer."""

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from regard.core.options import kinds_of
from regard.data.tensors.padded import Padded
from regard.models.transformer_options import TransformerEncoderOptions
from regard.nn.residual import NormPosition
from regard.optim.init import XavierUniform
from regard.views.figures.style import COLORS, FAINT, new_figure, panels, select_kinds
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAYERS, WIDTH, ROWS, LENGTH = 12, 64, 16, 20
PLACES: dict[str, Any] = kinds_of(NormPosition)
UNCONNECTED = "no residual"
PARTS = ("stream", "attention", "feed-forward")


def sizes_by_layer(place: str) -> dict[str, list[float]]:
    """Return the size, a root mean square, of the stream after each layer and of both branches.

    The model is a new encoder (Xavier) with random inputs. A branch is what is added to the stream.
    """
    torch.manual_seed(0)
    is_known = place in PLACES
    encoder: Any = TransformerEncoderOptions(
        layers=LAYERS,
        width=WIDTH,
        heads=4,
        feedforward_width=4 * WIDTH,
        dropout=0.0,
        norm_position=place if is_known else "pre",
        residual=is_known,
    ).build()
    XavierUniform().apply(encoder)
    found: dict[str, list[float]] = defaultdict(list)
    for layer in encoder.layers:
        parts = (layer, layer.attend.dropout, layer.feed.dropout)
        for name, part in zip(PARTS, parts, strict=True):
            _record(part, name, found)
    with torch.no_grad():
        encoder(Padded(torch.randn(ROWS, LENGTH, WIDTH), torch.ones(ROWS, LENGTH) > 0))
    return dict(found)


def _record(part: nn.Module, name: str, found: dict[str, list[float]]) -> None:
    """Append the size of each output of a module to the values of this name."""

    def record(part: nn.Module, inputs: Any, out: Any) -> None:
        x: Tensor = out[0] if isinstance(out, tuple) else out
        found[name].append(float(x.square().mean().sqrt()))

    part.register_forward_hook(record)


def plot_residual_sizes(args: PlotArgs) -> "Figure":
    """Plot the size of the stream and of both branches by layer, per position of the norms."""
    names = select_kinds(args.kinds, [*PLACES, UNCONNECTED])
    title = f"The residual stream and what each branch adds, {LAYERS} new layers"
    figure = new_figure(max(4.6, 2.3 * len(names) + 1.2), 3.4, title)
    axes_row = panels(figure, 1, len(names), sharey=True)
    for axes, name in zip(axes_row, names, strict=True):
        sizes = sizes_by_layer(name)
        for part, color in zip(PARTS, COLORS, strict=False):
            axes.plot(
                range(1, LAYERS + 1), sizes[part], "o-", markersize=3, color=color, label=part
            )
        axes.set_title(name)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_xticks([1, LAYERS // 2, LAYERS])
        axes.set_xlabel("layer")
    axes_row[0].set_ylabel("root mean square", color=FAINT)
    axes_row[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
