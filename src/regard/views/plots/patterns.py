"""Plot of the attention patterns of all kernels, computed from their gradients.

Shapes: n positions, K head width.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.nn.kernels import SEQUENCE_KERNELS
from regard.nn.kernels.kernel import AttentionMask, Kernel, KernelOptions, Shape
from regard.nn.positions import Position
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

LENGTH, HEAD_WIDTH, COLUMNS = 24, 8, 8
KINDS: dict[str, Any] = {**SEQUENCE_KERNELS}
# Sizes so small that 24 positions are several windows, blocks, chunks and segments.
SIZES: dict[str, dict[str, Any]] = {
    "local": {"window": 3},
    "strided": {"stride": 5},
    "block": {"size": 6},
    "longformer": {"window": 2, "dilation": 2, "tokens": 2},
    "bigbird": {"size": 2, "random": 1},
    "linformer": {"length": LENGTH, "rank": 6},
    "nystrom": {"landmarks": 6},
    "reformer": {"chunk": 4},
    "performer": {"features": 32},
    "synthesizer": {"length": LENGTH},
    "topk": {"count": 4},
    "convolution": {"window": 3},
}
HIDDEN = ("length",)  # settings without a meaning for the reader


def attention_matrix(options: KernelOptions, causal: bool) -> tuple[Tensor, Kernel]:
    """Return what each position (row) takes from each value (column), (n, n), and the kernel.

    The output is linear in the values, so its gradient is the attention matrix, also of kernels
    that never compute it.
    """
    torch.manual_seed(3)
    kernel = options.build(Shape(HEAD_WIDTH, 1, causal))
    q, k, v, *extra = torch.randn(3 + len(kernel.extra), 1, 1, LENGTH, HEAD_WIDTH)
    v.requires_grad_()
    out, _ = kernel(q, k, v, AttentionMask(Position(), 1), None, *extra)
    rows = [torch.autograd.grad(y, v, retain_graph=True)[0][0, 0, :, 0] for y in out[0, 0, :, 0]]
    return torch.stack(rows), kernel


def plot_patterns(args: PlotArgs) -> "Figure":
    """Plot the pattern of each kernel, in both directions and causal."""
    names = select_kinds(args.kinds, list(KINDS))
    columns = min(COLUMNS, len(names))
    rows = -(-len(names) // columns)
    title = "Attention patterns: which positions (columns) each position (row) attends to"
    figure = new_figure(1.75 * columns + 0.4, 2.1 * 2 * rows + 0.4, title)
    axes = iter(panels(figure, 2 * rows, columns))
    for causal in (False, True):
        for number in range(rows * columns):
            panel = next(axes)
            hide_frame(panel)
            panel.set_xticks([])
            panel.set_yticks([])
            if number < len(names):
                _plot_kernel(panel, names[number], causal)
    return figure


def _plot_kernel(panel: "Axes", name: str, causal: bool) -> None:
    """Plot the matrix of a kernel: darker cells have larger weights."""
    from matplotlib.colors import LinearSegmentedColormap

    options = KINDS[name](**SIZES.get(name, {}))
    panel.set_title(f"{name}, causal" if causal else name, fontsize=9, pad=13)
    if causal and not options.supports.causal:
        panel.text(0.5, 0.5, "not causal", ha="center", va="center", color=FAINT, fontsize=8.5)
        return
    weights, kernel = attention_matrix(options, causal)
    size = weights.abs()
    strength = 0.25 + 0.75 * size / size.amax(-1, keepdim=True).clamp(min=1e-9)
    shown = strength.masked_fill(size == 0, 0.0)
    colors = LinearSegmentedColormap.from_list("weights", [GRID, "#b9b3dc", COLORS[0]])
    panel.pcolormesh(
        shown.flip(0).numpy(), cmap=colors, vmin=0, vmax=1, edgecolors=PAPER, linewidth=0.4
    )
    panel.set_aspect("equal")
    add_subtitle(panel, "implied matrix" if kernel.implied else _settings(name))


def _settings(name: str) -> str:
    """Return the sizes of a kernel as text."""
    shown = [f"{key} {value}" for key, value in SIZES.get(name, {}).items() if key not in HIDDEN]
    return ", ".join(shown)
