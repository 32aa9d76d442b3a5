"""Textbook pictures, drawn from the code that trains: the union of what `regard plot` can draw."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.views.plots import (
    functions,
    masks,
    optimizer_paths,
    position_table,
    schedule_plot,
    search_plot,
)
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """What is drawn, how, and which of the wishes it reads."""

    about: str
    draw: Callable[[PlotArgs], "Figure"]
    reads: tuple[str, ...] = ()


PICTURES = {
    "schedule": Picture(
        "learning rate over a run: every kind, or that of a run or of settings",
        schedule_plot.draw,
        ("kinds", "run", "settings"),
    ),
    "optimizers": Picture(
        "paths over a ravine, a saddle and a bent valley", optimizer_paths.draw, ("kinds",)
    ),
    "search": Picture(
        "the tree of a search: greedy against a beam, of a toy or of a model for a text",
        search_plot.draw,
        ("run", "text", "beam"),
    ),
    "positions": Picture("sinusoidal positions, and how alike any two are", position_table.draw),
    "attention-mask": Picture("which tokens see which in a Transformer", masks.draw),
    "activations": Picture(
        "relu, gelu, silu, tanh, sigmoid", functions.draw_activations, ("kinds",)
    ),
    "softmax": Picture("probabilities at several temperatures", functions.draw_softmax),
    "smoothing": Picture("what a smoothed label asks for", functions.draw_smoothing),
}
