"""Plot of the attention masks of a Transformer, computed from its gradients."""

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

SOURCE = ("we", "saw", "a", "cat", "<eos>", "<pad>", "<pad>")
TARGET = ("<bos>", "wir", "sahen", "eine", "Katze")
SOURCE_LENGTH = 5
SIZES = {"width": 8, "heads": 2, "layers": 1, "feedforward_width": 8, "dropout": 0.0}


def dependencies(outputs: Tensor, inputs: Tensor) -> Tensor:
    """Return whether each output depends on each input, as booleans (T, S).

    outputs: (1, T, D). inputs: (1, S, D).
    """
    rows = []
    for t in range(outputs.shape[1]):
        (gradient,) = torch.autograd.grad(outputs[0, t].sin().sum(), inputs, retain_graph=True)
        rows.append(gradient[0].abs().sum(-1) > 0)
    return torch.stack(rows)


def maps() -> dict[str, tuple[Tensor, tuple[str, ...], tuple[str, ...]]]:
    """Return the mask, the query tokens and the key tokens of each kind of attention."""
    torch.manual_seed(1)
    source = torch.randn(1, len(SOURCE), 8, requires_grad=True)
    target = torch.randn(1, len(TARGET), 8, requires_grad=True)
    real = torch.arange(len(SOURCE))[None] < SOURCE_LENGTH
    encoded = Encoder(**SIZES).build()(Padded(source, real))
    causal: Any = CausalTransformerOptions(**SIZES).build()
    alone, _ = causal(target, causal.start(None))
    decoder = Decoder(**SIZES).build(8)
    memory = Padded(encoded.data.detach().requires_grad_(), real)
    crossed, _ = decoder(target, decoder.start(memory))
    return {
        "Encoder: all except padding": (
            dependencies(encoded.data, source)[:SOURCE_LENGTH],
            SOURCE[:SOURCE_LENGTH],
            SOURCE,
        ),
        "Decoder: causal": (dependencies(alone, target), TARGET, TARGET),
        "Cross-attention": (dependencies(crossed, memory.data), TARGET, SOURCE),
    }


def plot_masks(args: PlotArgs) -> "Figure":
    """Plot the masks of encoder, decoder and cross-attention."""
    from matplotlib.colors import ListedColormap

    figure = new_figure(9.6, 3.3, "Attention masks")
    found = maps()
    axes = panels(figure, 1, len(found), width_ratios=[len(SOURCE), len(TARGET), len(SOURCE)])
    colors = ListedColormap([GRID, COLORS[0]])
    for panel, (name, (visible, queries, keys)) in zip(axes, found.items(), strict=True):
        panel.pcolormesh(
            visible.flip(0).numpy(), cmap=colors, vmin=0, vmax=1, edgecolors=PAPER, linewidth=2
        )
        hide_frame(panel)
        panel.set_aspect("equal")
        panel.set_title(name)
        panel.set_xticks([i + 0.5 for i in range(len(keys))], keys, rotation=45)
        panel.set_yticks([i + 0.5 for i in range(len(queries))], queries[::-1])
    axes[0].set_ylabel("attends to (dark)")
    return figure
