"""Plot of recurrent layers next to self-attention: gradients over distance, time over length.

Shapes: n positions, D width.
"""

import time
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from regard.data.tensors.padded import Padded
from regard.models.recurrent import RecurrentEncoderOptions
from regard.models.transformer_options import TransformerEncoderOptions
from regard.views.figures.style import COLORS, FAINT, add_subtitle, new_figure, panels
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ATTENTION = "self-attention"
KINDS = ("rnn", "gru", "lstm", ATTENTION)
WIDTH, LENGTH, ROWS = 64, 64, 16
TIMED, LENGTHS, TIMED_WIDTH, CALLS = ("lstm", ATTENTION), (64, 128, 256, 512, 1024, 2048), 128, 5


def layer_of(kind: str, width: int) -> nn.Module:
    """Return a new layer of a recurrent cell, in one direction, or of self-attention."""
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"width": width, "layers": 1, "dropout": 0.0}
    if kind == ATTENTION:
        sizes |= {"heads": 2, "feedforward_width": 2 * width}
        return TransformerEncoderOptions(**sizes).build()
    return RecurrentEncoderOptions(**sizes, cell=kind, bidirectional=False).build(width)


def gradients_by_distance(kind: str) -> Tensor:
    """Return how much the last output depends on the input at each distance (n - 1,), from 1 on.

    It is the gradient norm relative to that of all inputs, mean of random rows.
    """
    layer = layer_of(kind, WIDTH)
    x = torch.randn(ROWS, LENGTH, WIDTH, requires_grad=True)
    out = layer(Padded(x, torch.ones(ROWS, LENGTH, dtype=torch.bool))).data[:, -1]
    (out @ torch.randn(WIDTH)).sum().backward()
    assert x.grad is not None
    norms = x.grad.norm(dim=-1)
    return (norms / norms.norm(dim=-1, keepdim=True)).mean(0).flip(0)[1:]


@torch.inference_mode()
def forward_time(kind: str, length: int) -> float:
    """Return the milliseconds of a forward pass of one row: the fastest of a few calls."""
    layer = layer_of(kind, TIMED_WIDTH).eval()
    source = Padded(torch.randn(1, length, TIMED_WIDTH), torch.ones(1, length, dtype=torch.bool))
    times = []
    for _ in range(1 + CALLS):
        start = time.perf_counter()
        layer(source)
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def plot_recurrent(args: PlotArgs) -> "Figure":
    """Plot gradients over the distance, and the time of a forward pass over the length."""
    figure = new_figure(9.6, 3.7, "Recurrent layers and self-attention")
    left, right = panels(figure, 1, 2)
    for kind, color in zip(KINDS, COLORS, strict=False):
        left.plot(range(1, LENGTH), gradients_by_distance(kind), color=color, label=kind)
        if kind in TIMED:
            times = [forward_time(kind, length) for length in LENGTHS]
            right.plot(LENGTHS, times, "o-", markersize=3, color=color, label=kind)
    left.set_title("Gradient of the last output", pad=14)
    add_subtitle(left, "norm by the distance of the input, fraction of all inputs; new layers")
    left.set_xlabel("distance")
    left.set_yscale("log")
    left.legend(loc="lower left")
    right.set_title("Time of a forward pass (ms)", pad=14)
    threads = torch.get_num_threads()
    add_subtitle(right, f"one row, width {TIMED_WIDTH}, threads: {threads}, on this machine")
    right.set_xlabel("length n")
    right.set_xscale("log", base=2)
    right.set_yscale("log")
    right.set_xticks(LENGTHS, [f"{length:,}" for length in LENGTHS])
    right.yaxis.set_major_formatter("{x:g}")
    right.minorticks_off()
    right.legend(loc="upper left")
    right.grid(color=FAINT, alpha=0.2)
    return figure
