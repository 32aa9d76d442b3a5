"""Plots of activation functions, softmax and label smoothing."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.objectives.cross_entropy import SmoothedLoss
from regard.views.figures.style import COLORS, FAINT, new_figure, panels, select_kinds
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}
LOGITS = (3.0, 2.0, 1.0, 0.5, 0.0, -1.0)
TEMPERATURES = (0.3, 1.0, 3.0)
SMOOTHING = (0.0, 0.1, 0.4)


def plot_activations(args: PlotArgs) -> "Figure":
    """Plot each activation function and its derivative."""
    names = select_kinds(args.kinds, list(ACTIVATIONS))
    figure = new_figure(2.5 * len(names) + 0.4, 2.8, "Activation functions and their derivatives")
    for name, axes in zip(names, panels(figure, 1, len(names), sharey=True), strict=True):
        x = torch.linspace(-4, 4, 400).requires_grad_()
        y = ACTIVATIONS[name](x)
        (derivative,) = torch.autograd.grad(y.sum(), x)
        axes.plot(x.detach(), y.detach(), color=COLORS[0], label="value")
        axes.plot(
            x.detach(), derivative, color=COLORS[1], linestyle=(0, (4, 1.5)), label="derivative"
        )
        axes.set_title(name)
        axes.set_ylim(-1.25, 2.25)
        axes.set_xlim(-4, 4)
        axes.set_xlabel("input")
        if name == names[0]:
            axes.legend(loc="upper left")
    return figure


def plot_softmax(args: PlotArgs) -> "Figure":
    """Plot the softmax of the same logits at several temperatures."""
    rows = [torch.tensor(LOGITS).div(t).softmax(-1).tolist() for t in TEMPERATURES]
    titles = [f"temperature {t:g}" for t in TEMPERATURES]
    figure = _bars("Softmax: logits to probabilities", rows, titles)
    figure.axes[0].set_ylabel("probability")
    figure.supxlabel("logit of the token", fontsize=9.5)
    return figure


def plot_smoothing(args: PlotArgs) -> "Figure":
    """Plot the target distribution at several rates of label smoothing."""
    figure = _bars(
        "Label smoothing: target distribution",
        [_target(smoothing) for smoothing in SMOOTHING],
        [f"smoothing {smoothing:g}" for smoothing in SMOOTHING],
    )
    for axes in figure.axes:
        axes.set_xticks(range(len(LOGITS)), ["true", *"abcde"])
    figure.axes[0].set_ylabel("probability")
    return figure


def _target(smoothing: float) -> list[float]:
    """Return the target distribution of the smoothed loss: softmax minus the gradient."""
    scores = torch.zeros(1, len(LOGITS), requires_grad=True)
    loss, _ = SmoothedLoss.apply(scores, torch.tensor([0]), smoothing)
    loss.backward()
    assert scores.grad is not None
    return (scores.softmax(-1) - scores.grad)[0].tolist()


def _bars(title: str, rows: list[list[float]], titles: list[str]) -> "Figure":
    """Plot distributions side by side, with their values and the maximum highlighted."""
    figure = new_figure(8.4, 2.8, title)
    axes_list = panels(figure, 1, len(rows), sharey=True)
    for row, name, axes in zip(rows, titles, axes_list, strict=True):
        colors = [COLORS[0] if value == max(row) else COLORS[3] for value in row]
        bars = axes.bar(range(len(row)), row, color=colors, width=0.75)
        labels = [f"{value:.2f}" if value >= 0.005 else "" for value in row]
        axes.bar_label(bars, labels, fontsize=8, color=FAINT, padding=2)
        axes.set_xticks(range(len(row)), [f"{score:g}" for score in LOGITS])
        axes.set_title(name)
        axes.set_ylim(0, 1.1)
        axes.grid(False, axis="x")
    return figure
