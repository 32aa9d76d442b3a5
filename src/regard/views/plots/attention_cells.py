"""Plot of how many scores sparse and low-rank kernels compute over the length.

Shapes: n positions, K head width.
"""

from collections.abc import Callable
from math import isqrt
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from regard.nn.kernels import SEQUENCE_KERNELS
from regard.nn.kernels.kernel import AttentionMask, Kernel, Shape
from regard.nn.positions import Position
from regard.views.figures.style import (
    COLORS,
    FAINT,
    INK,
    add_subtitle,
    new_figure,
    panels,
    select_kinds,
)
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS: dict[str, Any] = {**SEQUENCE_KERNELS}
SPARSE = ("local", "strided", "block", "longformer", "bigbird", "convolution")
SHOWN = ("softmax", *SPARSE, "linformer", "nystrom", "reformer")
LENGTHS, HEAD_WIDTH = (128, 256, 512, 1024, 2048), 8
LOWEST = 300  # cells at the bottom of the panels
DOTTED: Any = (0, (1, 2))
DASHES: dict[str, Any] = {  # of lines that cover others
    "longformer": (0, (3, 3)),
    "linformer": (0, (2, 4)),
    "nystrom": (3, (2, 4)),
    "reformer": (0, (4, 1.5)),
}


class ScoreCount(TorchFunctionMode):
    """Counts the scores that attention normalizes inside the block, on either path of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.scaled_dot_product_attention:
            self.scores += args[0].shape[:-1].numel() * args[1].shape[-2]
        elif func is Tensor.softmax and args[1] == -1:  # other dimensions mix hash rounds
            self.scores += args[0].numel()
        return func(*args, **(kwargs or {}))


def kernel_of(name: str, length: int) -> Kernel:
    """Return a kernel with one head and default settings; `strided` has stride sqrt(n)."""
    torch.manual_seed(0)
    fields = {"length": length, "stride": isqrt(length)}
    settings = {key: value for key, value in fields.items() if key in KINDS[name].model_fields}
    kernel: Kernel = KINDS[name](**settings).build(Shape(HEAD_WIDTH, 1, causal=False))
    return kernel


@torch.no_grad()
def nonzero_weights(name: str, length: int) -> int:
    """Return how many entries of the attention matrix are not zero."""
    kernel, (q, k, v, *extra) = kernel_of(name, length), _inputs(name, length)
    weights = kernel.weights(q, k, v, AttentionMask(Position(), 1), None, *extra)[0]
    return int(weights.count_nonzero())


@torch.no_grad()
def computed_scores(name: str, length: int) -> int:
    """Return how many scores a kernel computes, counted while it runs."""
    kernel, (q, k, v, *extra) = kernel_of(name, length), _inputs(name, length)
    with ScoreCount() as count:
        kernel(q, k, v, AttentionMask(Position(), 1), None, *extra)
    return count.scores


def _inputs(name: str, length: int) -> tuple[Tensor, ...]:
    """Return queries, keys, values and further projections (1, 1, n, K), of small size."""
    extra = len(kernel_of(name, length).extra)
    generator = torch.Generator().manual_seed(1)
    return tuple(torch.randn(3 + extra, 1, 1, length, HEAD_WIDTH, generator=generator))


def plot_cells(args: PlotArgs) -> "Figure":
    """Plot weights that are not zero, and computed scores, over the length."""
    names = select_kinds(args.kinds, SHOWN)
    figure = new_figure(11.0, 4.4, "How many scores attention needs over the length")
    left, right = panels(figure, 1, 2, sharey=True)
    _plot_counts(left, nonzero_weights, [n for n in names if n in ("softmax", *SPARSE)])
    left.set_title("Weights that are not zero", pad=14)
    add_subtitle(left, "cells of the attention matrix, one head, default settings")
    left.set_ylabel("cells")
    _plot_counts(right, computed_scores, [name for name in names if name != "convolution"])
    right.set_title("Scores that the code computes", pad=14)
    add_subtitle(right, "counted while the kernel runs: inputs of its softmax")
    for axes in (left, right):
        axes.set_ylim(bottom=LOWEST)
        first, last = LENGTHS[1], LENGTHS[-1]
        for power, name in ((1, "~ n"), (2, "~ n²")):
            ends = [LOWEST, LOWEST * (last / first) ** power]
            axes.plot([first, last], ends, color=FAINT, linewidth=1, linestyle=DOTTED)
            axes.text(last, ends[1], f" {name}", color=FAINT, fontsize=8, va="center")
    handles: dict[str, Any] = {}
    for axes in (left, right):
        lines, labels = axes.get_legend_handles_labels()
        handles |= dict(zip(labels, lines, strict=True))
    shown = [handles[name] for name in names]
    figure.legend(shown, names, loc="outside right upper", fontsize=8)
    return figure


def _plot_counts(axes: "Axes", count: Callable[[str, int], int], names: list[str]) -> None:
    """Plot a count of each kernel over the lengths, on logarithmic axes."""
    for name in names:
        number = SHOWN.index(name)
        color = COLORS[(number - 1) % len(COLORS)] if number else INK
        style: Any = {"linestyle": DASHES.get(name, "solid"), "linewidth": 1.6, "markersize": 3}
        found = [count(name, n) for n in LENGTHS]
        axes.plot(LENGTHS, found, "o", color=color, label=name, **style)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(LENGTHS, [f"{length:,}" for length in LENGTHS])
    axes.minorticks_off()
    axes.set_xlabel("length n")
