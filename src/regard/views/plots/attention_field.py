"""Plots of sparse attention: how its field widens with layers, and the sorting of Reformer.

Shapes: n positions, D width, K head width.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.data.tensors.padded import Padded
from regard.models.transformer_options import TransformerEncoderOptions
from regard.nn.kernels import SEQUENCE_KERNELS
from regard.nn.kernels.kernel import AttentionMask
from regard.nn.kernels.reformer import ReformerAttention
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
    select_kinds,
)
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LENGTH, WIDTH, DEPTHS = 48, 16, (1, 2, 3, 4)
KINDS: dict[str, Any] = {**SEQUENCE_KERNELS}
SIZES: dict[str, dict[str, Any]] = {
    "local": {"window": 3},
    "strided": {"stride": 7},
    "block": {"size": 8},
    "longformer": {"window": 3},
    "bigbird": {"size": 3, "random": 1},
    "convolution": {"window": 3},
}
MAPPED = "local"
SORTED, CHUNK, GROUPS, HEAD_WIDTH = 48, 8, 6, 16


def field(name: str, layers: int) -> Tensor:
    """Return which inputs (columns) each output (row) depends on, (n, n), by gradients.

    The batch has a copy of the input for each output, so that one backward pass is enough.
    """
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"width": WIDTH, "heads": 1, "feedforward_width": 16, "dropout": 0.0}
    attention = {"kind": name, **SIZES[name]}
    options = TransformerEncoderOptions.model_validate(
        {**sizes, "layers": layers, "attention": attention, "positions": "none"}
    )
    x = torch.randn(1, LENGTH, WIDTH).repeat(LENGTH, 1, 1).requires_grad_()
    out = options.build()(Padded(x, torch.ones(LENGTH, LENGTH, dtype=torch.bool))).data
    own = out[torch.arange(LENGTH), torch.arange(LENGTH)]
    (own @ torch.randn(WIDTH)).sum().backward()
    assert x.grad is not None
    return (x.grad != 0).any(-1)


def plot_field(args: PlotArgs) -> "Figure":
    """Plot which inputs outputs depend on after 1 to 4 layers, and their number for each kernel."""
    from matplotlib.colors import ListedColormap

    names = select_kinds(args.kinds, list(SIZES))
    mapped = MAPPED if MAPPED in names else names[0]
    figure = new_figure(12.6, 3.1, f"Layers widen the field of sparse attention: {mapped}")
    *maps, curve = panels(figure, 1, len(DEPTHS) + 1, width_ratios=[1] * len(DEPTHS) + [1.6])
    for axes, layers in zip(maps, DEPTHS, strict=True):
        used = field(mapped, layers)
        axes.imshow(used.numpy(), cmap=ListedColormap([GRID, COLORS[0]]), vmin=0, vmax=1)
        hide_frame(axes)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_title(f"{layers} layer{'s' * (layers > 1)}", pad=14)
        add_subtitle(axes, f"at most {int(used.sum(-1).max())} inputs")
        axes.set_xlabel("input")
    maps[0].set_ylabel("output")
    for number, name in enumerate(names):
        counts = [float(field(name, layers).sum(-1).float().mean()) for layers in DEPTHS]
        sizes = ", ".join(f"{key} {value}" for key, value in SIZES[name].items())
        style: Any = (0, (4, 1.5)) if name == "convolution" else "solid"
        label, color = f"{name}: {sizes}", COLORS[number]
        curve.plot(DEPTHS, counts, "o", linestyle=style, markersize=3, color=color, label=label)
    curve.set_title("Inputs per output", pad=14)
    add_subtitle(curve, f"mean of {LENGTH} outputs")
    curve.axhline(LENGTH, color=FAINT, linewidth=1, linestyle=(0, (1, 2)))
    curve.set_ylim(0, LENGTH * 1.06)
    curve.set_xticks(DEPTHS)
    curve.set_xlabel("layers")
    curve.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    return figure


def grouped_vectors() -> Tensor:
    """Return vectors (1, 1, n, K) in random order that are similar within `GROUPS` groups."""
    generator = torch.Generator().manual_seed(4)
    centers = torch.randn(GROUPS, HEAD_WIDTH, generator=generator)
    group = torch.randint(GROUPS, (SORTED,), generator=generator)
    noise = 0.3 * torch.randn(SORTED, HEAD_WIDTH, generator=generator)
    return (2 * centers[group] + noise)[None, None]


def sorted_maps() -> tuple[Tensor, Tensor, Tensor]:
    """Return the Reformer's map, all positions, one round (n, n); buckets and order (n,)."""
    torch.manual_seed(2)
    kernel = ReformerAttention(CHUNK, rounds=1, redraw=0, head_width=HEAD_WIDTH)
    k = grouped_vectors()
    weights = kernel.weights(k, k, k, AttentionMask(Position(), 1), None)[0][0, 0]
    (hashed,) = kernel.hash_rounds(k, torch.ones(1, SORTED, dtype=torch.bool))
    return weights, hashed.buckets[0, 0], hashed.order[0, 0]


def plot_sorting(args: PlotArgs) -> "Figure":
    """Plot the map of Reformer before and after its positions are sorted by bucket."""
    weights, buckets, order = sorted_maps()
    figure = new_figure(9.6, 4.9, "Reformer: sorting by bucket gathers what hashes alike")
    left, right = panels(figure, 1, 2)
    _plot_buckets(left, weights, buckets)
    left.set_title("In the order of the input", pad=24)
    _plot_buckets(right, weights[order][:, order], buckets[order])
    right.set_title("Sorted by bucket", pad=24)
    for start in range(0, SORTED, CHUNK):
        low, ends = max(0, start - CHUNK) - 0.5, (start - 0.5, start + CHUNK - 0.5)
        right.plot(
            [low, ends[1], ends[1], low, low],
            [ends[0], ends[0], ends[1], ends[1], ends[0]],
            color=INK,
            linewidth=0.8,
        )
    for axes, text in (
        (left, "colors: bucket of each position; darker cells have larger weights"),
        (right, f"frames: a chunk of {CHUNK} positions attends to itself and the previous one"),
    ):
        axes.text(0, 1.04, text, transform=axes.transAxes, fontsize=8, color=FAINT)
        axes.set_xlabel("position attended to" if axes is left else "position, sorted")
    left.set_ylabel("position that attends")
    return figure


def _plot_buckets(axes: "Axes", weights: Tensor, buckets: Tensor) -> None:
    """Plot a map with a strip that colors each position by its bucket."""
    from matplotlib.colors import LinearSegmentedColormap

    scale = LinearSegmentedColormap.from_list("weights", ["#9d97cc", COLORS[0]])
    colors = scale.with_extremes(bad=GRID)
    shown = weights.masked_fill(weights == 0, torch.nan)
    axes.imshow(shown.numpy(), cmap=colors, vmin=0, vmax=float(weights.max()))
    used = buckets.unique().tolist()
    for position, bucket in enumerate(buckets.tolist()):
        color = COLORS[used.index(bucket) % len(COLORS)]
        for corner in ((position - 0.5, -2.4), (-2.4, position - 0.5)):
            size = (1, 1.5) if corner[1] == -2.4 else (1.5, 1)
            axes.add_patch(_cell(corner, size, color))
    axes.set_xlim(-2.6, SORTED - 0.5)
    axes.set_ylim(SORTED - 0.5, -2.6)
    axes.set_xticks([])
    axes.set_yticks([])
    hide_frame(axes)


def _cell(corner: tuple[float, float], size: tuple[float, float], color: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, *size, color=color, linewidth=0)
