"""Which tokens see which: read off a Transformer's gradients, not off the masks."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.data.tensors.padded import Padded
from regard.models.transformer_options import CausalTransformerOptions
from regard.models.transformer_options import TransformerDecoderOptions as Decoder
from regard.models.transformer_options import TransformerEncoderOptions as Encoder
from regard.views.figures.style import COLORS, GRID, PAPER, hide_frame, new_figure, panels
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE = ("we", "saw", "a", "cat", "end", "pad", "pad")
TARGET = ("begin", "wir", "sahen", "eine", "Katze")
REAL = 5
SIZES = {"width": 8, "heads": 2, "layers": 1, "feedforward_width": 8, "dropout": 0.0}


def seen(outputs: Tensor, inputs: Tensor) -> Tensor:
    """(T, S): whether output t (of outputs (1, T, D)) changes with input s (of (1, S, D))."""
    rows = []
    for t in range(outputs.shape[1]):
        (slope,) = torch.autograd.grad(outputs[0, t].sin().sum(), inputs, retain_graph=True)
        rows.append(slope[0].abs().sum(-1) > 0)
    return torch.stack(rows)


def maps() -> dict[str, tuple[Tensor, tuple[str, ...], tuple[str, ...]]]:
    """By name: what sees what, the tokens that look and those that are looked at."""
    torch.manual_seed(1)
    source = torch.randn(1, len(SOURCE), 8, requires_grad=True)
    target = torch.randn(1, len(TARGET), 8, requires_grad=True)
    real = torch.arange(len(SOURCE))[None] < REAL
    encoded = Encoder(**SIZES).build()(Padded(source, real))
    causal: Any = CausalTransformerOptions(**SIZES).build()
    alone, _ = causal(target, causal.start(None))
    decoder = Decoder(**SIZES).build(8)
    memory = Padded(encoded.data.detach().requires_grad_(), real)
    crossed, _ = decoder(target, decoder.start(memory))
    return {
        "Encoder: all but padding": (seen(encoded.data, source)[:REAL], SOURCE[:REAL], SOURCE),
        "Decoder: no future": (seen(alone, target), TARGET, TARGET),
        "Decoder on the source": (seen(crossed, memory.data), TARGET, SOURCE),
    }


def draw(wish: PlotArgs) -> "Figure":
    """A map for the encoder, the decoder, and from the one to the other."""
    from matplotlib.colors import ListedColormap

    figure = new_figure(9.6, 3.3, "Which tokens see which")
    found = maps()
    axes = panels(figure, 1, len(found), width_ratios=[len(SOURCE), len(TARGET), len(SOURCE)])
    colors = ListedColormap([GRID, COLORS[0]])
    for panel, (name, (visible, looking, looked)) in zip(axes, found.items(), strict=True):
        panel.pcolormesh(
            visible.flip(0).numpy(), cmap=colors, vmin=0, vmax=1, edgecolors=PAPER, linewidth=2
        )
        hide_frame(panel)
        panel.set_aspect("equal")
        panel.set_title(name)
        panel.set_xticks([i + 0.5 for i in range(len(looked))], looked, rotation=45)
        panel.set_yticks([i + 0.5 for i in range(len(looking))], looking[::-1])
    axes[0].set_ylabel("sees (dark)")
    return figure
