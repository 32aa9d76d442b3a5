"""Plots that explain attention: its scale, the order of products, random features, convolutions.

Shapes: d head width, n positions, m features.
"""

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.nn.kernels.convolution import ConvolutionAttention
from regard.nn.kernels.kernel import AttentionMask, Kernel
from regard.nn.kernels.performer import PerformerAttention
from regard.nn.kernels.softmax import SoftmaxAttention
from regard.nn.positions import Position
from regard.views.figures.style import (
    COLORS,
    FAINT,
    GRID,
    INK,
    add_subtitle,
    hide_frame,
    new_figure,
    panels,
)
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTHS, SHOWN_WIDTHS = (2, 4, 8, 16, 32, 64, 128, 256, 512), (4, 64, 512)
KEYS, SAMPLES = 10, 2000
FEATURES, DRAWS, LENGTH, HEAD_WIDTH = (4, 8, 16, 32, 64, 128, 256, 512, 1024), 40, 32, 16
INPUT_SIZES = (0.25, 0.5, 1.0)  # standard deviations of queries and keys
TAPS = 9
MATRICES = {  # rows, columns and color; default: n x d
    "Kᵀ": ("d", "n", COLORS[3]),
    "Q Kᵀ": ("n", "n", COLORS[1]),
    "Kᵀ V": ("d", "d", COLORS[1]),
}


def plot_scale(args: PlotArgs) -> "Figure":
    """Plot scores and largest weights over the head width, with and without the scale."""
    figure = new_figure(11.4, 3.3, "Why attention scores are divided by sqrt(d)")
    without, scaled, largest = panels(figure, 1, 3)
    for axes, is_scaled in ((without, False), (scaled, True)):
        for width, color in zip(SHOWN_WIDTHS, COLORS, strict=False):
            scores = _scores(width, is_scaled).flatten()
            label = f"d = {width}, variance {scores.var():.3g}"
            axes.hist(scores, 80, density=True, histtype="step", color=color, label=label)
        axes.set_title("Scores q . k / sqrt(d)" if is_scaled else "Scores q . k")
        axes.set_xlabel("score")
        axes.set_yticks([])
        axes.legend(fontsize=8, loc="upper left")
        axes.set_ylim(0, axes.get_ylim()[1] * 1.35)
    for is_scaled, name, color in (
        (False, "q . k", COLORS[1]),
        (True, "q . k / sqrt(d)", COLORS[0]),
    ):
        means = [float(_scores(d, is_scaled).softmax(-1).amax(-1).mean()) for d in WIDTHS]
        largest.plot(WIDTHS, means, marker="o", markersize=3, color=color, label=name)
    largest.set_xscale("log", base=2)
    largest.set_xticks(WIDTHS, [str(width) for width in WIDTHS])
    largest.minorticks_off()
    largest.set_ylim(0, 1)
    largest.set_xlabel("head width d")
    largest.set_title(f"Mean largest weight of {KEYS} keys")
    largest.legend(loc="upper left")
    return figure


def _scores(width: int, is_scaled: bool) -> Tensor:
    """Return scores (samples, keys) of random queries and keys, by the kernel that also trains."""
    generator = torch.Generator().manual_seed(width)
    q = torch.randn(SAMPLES, 1, 1, width, generator=generator)
    k = torch.randn(SAMPLES, 1, KEYS, width, generator=generator)
    return SoftmaxAttention(scaled=is_scaled).scores(q, k)[:, 0, 0]


def plot_order(args: PlotArgs) -> "Figure":
    """Plot the matrices of (Q K^T) V and Q (K^T V), in proportion, with their sizes."""
    figure = new_figure(9.6, 5.6, "The order of products decides the cost")
    rows = {
        "(Q Kᵀ) V: softmax needs the n x n matrix": ["Q", "Kᵀ", "→", "Q Kᵀ", "V", "→", "out"],
        "Q (Kᵀ V): only d x d in between": ["Kᵀ", "V", "→", "Q", "Kᵀ V", "→", "out"],
    }
    costs = (
        "time 2 n² d, memory n²",
        "time 2 n d², memory d²; at n = 4,096, d = 64: 64 x less time",
    )
    drawn = zip(panels(figure, 2, 1), rows.items(), costs, strict=True)
    for axes, (title, names), cost in drawn:
        hide_frame(axes)
        axes.set_title(title, pad=16)
        add_subtitle(axes, cost)
        axes.set_xlim(0, 14.6)
        axes.set_ylim(-2.1, 2.1)
        axes.set_aspect("equal", anchor="W")
        axes.set_xticks([])
        axes.set_yticks([])
        _draw_matrices(axes, names)
    return figure


def _draw_matrices(axes: "Axes", names: list[str]) -> None:
    """Draw matrices side by side, n four times as long as d; intermediate results are red."""
    from matplotlib.patches import Rectangle

    x, lengths = 0.1, {"n": 4.0, "d": 1.0}
    for name in names:
        if name == "→":
            axes.text(x + 0.2, 0, name, fontsize=15, ha="center", va="center", color=INK)
            x += 0.8
            continue
        rows, columns, color = MATRICES.get(name, ("n", "d", COLORS[3]))
        height, width = lengths[rows], lengths[columns]
        axes.add_patch(Rectangle((x, -height / 2), width, height, color=color, alpha=0.75))
        label = f"{name}\n{rows} x {columns}"
        axes.text(x + width / 2, 0, label, fontsize=8, ha="center", va="center", color=INK)
        x += width + 0.4


def plot_performer(args: PlotArgs) -> "Figure":
    """Plot the attention of random features next to softmax, and its error over features."""
    figure = new_figure(11.4, 3.6, "Performer: random features approach softmax attention")
    *maps, error = panels(figure, 1, 4, width_ratios=[1, 1, 1, 1.5])
    q, k, v = random_inputs(INPUT_SIZES[1])
    exact = _weights(SoftmaxAttention(), q, k, v)
    shown = {"softmax": exact}
    shown |= {f"{m} features": _weights(_performer(m, 0), q, k, v) for m in (32, 1024)}
    for axes, (name, weights) in zip(maps, shown.items(), strict=True):
        _plot_map(axes, weights, float(exact.max()))
        axes.set_title(name)
    for size, color in zip(INPUT_SIZES, COLORS, strict=False):
        errors = [feature_error(m, *random_inputs(size)) for m in FEATURES]
        label = f"queries and keys of size {size:g}"
        error.plot(FEATURES, errors, marker="o", markersize=3, color=color, label=label)
        ideal = [errors[-1] * (FEATURES[-1] / m) ** 0.5 for m in FEATURES]
        error.plot(FEATURES, ideal, color=color, linewidth=1, linestyle=(0, (1, 2)))
    error.plot([], [], color=FAINT, linewidth=1, linestyle=(0, (1, 2)), label="~ 1 / sqrt(m)")
    error.set_xscale("log", base=2)
    error.set_yscale("log")
    error.set_xticks(FEATURES, [str(m) for m in FEATURES])
    error.minorticks_off()
    error.set_xlabel("features m")
    error.set_title(f"Error relative to the weights, {DRAWS} samples")
    error.legend(fontsize=8)
    return figure


def random_inputs(size: float) -> tuple[Tensor, ...]:
    """Return queries, keys and values (1, 1, n, d) with this standard deviation."""
    generator = torch.Generator().manual_seed(5)
    return tuple((size * torch.randn(3, 1, 1, LENGTH, HEAD_WIDTH, generator=generator)).unbind(0))


def feature_error(features: int, q: Tensor, k: Tensor, v: Tensor) -> float:
    """Return the mean difference of Performer and softmax weights, relative to the mean weight."""
    exact = _weights(SoftmaxAttention(), q, k, v)
    found = [(_weights(_performer(features, n), q, k, v) - exact).abs() for n in range(DRAWS)]
    return float(torch.stack(found).mean() / exact.mean())


def _performer(features: int, seed: int) -> Kernel:
    torch.manual_seed(seed)
    return PerformerAttention(features, HEAD_WIDTH, redraw=0, causal=False)


def _weights(kernel: Kernel, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return the weights (n, n) of the first row and head."""
    return kernel.weights(q, k, v, AttentionMask(Position(), 1), None)[0][0, 0]


def _plot_map(axes: "Axes", weights: Tensor, largest: float) -> None:
    """Plot an attention matrix; darker cells have larger weights."""
    from matplotlib.colors import LinearSegmentedColormap

    colors = LinearSegmentedColormap.from_list("weights", [GRID, COLORS[0]])
    axes.imshow(weights.numpy(), cmap=colors, vmin=0, vmax=largest)
    hide_frame(axes)
    axes.set_xticks([])
    axes.set_yticks([])


def plot_convolution(args: PlotArgs) -> "Figure":
    """Plot attention heads that each take one shift, and their sum next to a convolution."""
    figure = new_figure(12.6, 4.2, "A convolution is attention with one head per shift")
    grid: Any = figure.add_gridspec(2, TAPS, height_ratios=[1, 1.3])
    kernel, x, taps = shift_heads(), torch.zeros(1, TAPS, 48, 1), torch.linspace(-1, 1, TAPS)
    signal = torch.sin(torch.arange(48) / 3.0) + (torch.arange(48) > 24)
    x[:] = signal[:, None]
    maps = kernel.weights(x, x, x, AttentionMask(Position(), 1), None)[0][0].detach()
    for head in range(TAPS):
        axes = figure.add_subplot(grid[0, head])
        _plot_map(axes, maps[head, :16, :16], 1.0)
        axes.set_title(f"shift {head - TAPS // 2:+d}", fontsize=9)
    out = kernel(x, x, x, AttentionMask(Position(), 1), None)[0].detach()[0, :, :, 0]
    mixed = taps @ out  # the output projection weighs the heads
    convolved = F.conv1d(signal[None, None], taps[None, None], padding=TAPS // 2)[0, 0]
    axes = figure.add_subplot(grid[1, :])
    axes.plot(signal, color=FAINT, linewidth=1, label="input")
    axes.plot(convolved, color=COLORS[3], linewidth=4, alpha=0.5, label="convolution of 9 weights")
    axes.plot(mixed, color=COLORS[0], linestyle=(0, (4, 1.5)), label="attention with 9 heads")
    axes.set_xlabel("position")
    axes.legend(ncols=3, loc="upper left")
    axes.set_ylim(top=float(convolved.max()) * 1.5)
    return figure


def shift_heads() -> ConvolutionAttention:
    """Return a kernel whose heads each attend to one shift, from -4 to +4."""
    kernel = ConvolutionAttention(TAPS // 2, TAPS, causal=False)
    with torch.no_grad():
        kernel.scores.copy_(100 * torch.eye(TAPS))
    return kernel
