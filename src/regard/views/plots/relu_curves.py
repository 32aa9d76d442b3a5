"""Plot of softmax and ReLU attention on the task `reverse`: learning curves and maps.

Shapes: T target tokens, S source tokens, H heads.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.data.tensors.padded import Batch, pad
from regard.data.tensors.special import EOS, SPECIALS
from regard.inputs.input import InputShape
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.nn.capture_hooks import recording
from regard.objectives import CrossEntropy
from regard.views.figures.style import (
    COLORS,
    GRID,
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

KINDS = ("softmax", "relu")
LETTERS, SHORTEST, LONGEST = "abcdefgh", 4, 8
WIDTH, ROWS, STEPS, LR, WARMUP, WINDOW = 32, 32, 800, 5e-3, 30, 20
HELD_OUT = 1 << 20  # seed of examples that no training has


class Learned(NamedTuple):
    """A trained model, and the loss per token of each update."""

    model: nn.Module
    losses: list[float]


def examples(seed: int, rows: int) -> Batch:
    """Return random words and their reversals."""
    generator = torch.Generator().manual_seed(seed)
    sources, targets = [], []
    for length in torch.randint(SHORTEST, LONGEST + 1, (rows,), generator=generator).tolist():
        word = torch.randint(len(LETTERS), (length,), generator=generator) + len(SPECIALS)
        sources.append([*word.tolist(), EOS])
        targets.append([*word.flip(0).tolist(), EOS])
    return Batch(pad(sources), pad(targets))


def train(kind: str, steps: int) -> Learned:
    """Return a Transformer after a short training, with this kind of attention everywhere."""
    torch.manual_seed(0)
    side: dict[str, Any] = {"kind": "transformer", "width": WIDTH, "heads": 2, "layers": 1}
    side |= {"feedforward_width": 2 * WIDTH, "dropout": 0.0, "attention": kind}
    tokens = len(SPECIALS) + len(LETTERS)
    tree = {"encoder": side, "decoder": side | {"cross": kind}, "embedding_width": 0}
    options = EncoderDecoderOptions.model_validate(tree)
    model = options.build(InputShape("text", tokens), tokens, shared=False)
    objective, losses = CrossEntropy(label_smoothing=0.0), []
    optimizer = torch.optim.AdamW(model.parameters(), LR)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = LR * min(1, (step + 1) / WARMUP) * (1 - step / steps)
        loss = objective(model, examples(step, ROWS))
        optimizer.zero_grad()
        (loss.sum / loss.count).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(float(loss.sum.detach()) / loss.count)
    return Learned(model.eval(), losses)


@torch.no_grad()
def cross_attention(model: nn.Module, batch: Batch) -> Tensor:
    """Return the attention to the source (H, T, S) of the first row of a batch."""
    with recording() as captured:
        model(batch)
    return captured.cross[-1][0]


def plot_relu(args: PlotArgs) -> "Figure":
    """Plot the loss of both kinds over the updates, and their attention for one word."""
    kinds = select_kinds(args.kinds, KINDS)
    figure = new_figure(11.4, 3.6, "ReLU instead of softmax, on the task `reverse`")
    curves, *maps = panels(figure, 1, 1 + len(kinds), width_ratios=[1.4] + [1] * len(kinds))
    batch = examples(HELD_OUT, 1)
    for axes, kind in zip(maps, kinds, strict=True):
        learned, color = train(kind, STEPS), COLORS[KINDS.index(kind)]
        smooth = torch.tensor(learned.losses).unfold(0, min(WINDOW, STEPS), 1).mean(-1)
        curves.plot(range(STEPS - len(smooth), STEPS), smooth, color=color, label=kind)
        weights = cross_attention(learned.model, batch).mean(0)
        _plot_map(axes, weights, batch)
        axes.set_title(kind, pad=14, color=color)
        sums = weights.sum(-1)
        add_subtitle(
            axes, f"mean of heads; rows sum to {float(sums.min()):.1f} to {float(sums.max()):.1f}"
        )
    curves.set_title("Loss per token on new examples", pad=14)
    add_subtitle(curves, f"one layer, width {WIDTH}")
    curves.set_xlabel("update")
    curves.set_ylim(bottom=0)
    curves.legend()
    return figure


def _plot_map(axes: "Axes", weights: Tensor, batch: Batch) -> None:
    """Plot the weights (T, S), mean of the heads; darker cells have larger weights."""
    from matplotlib.colors import LinearSegmentedColormap

    assert batch.source is not None and batch.target is not None
    colors = LinearSegmentedColormap.from_list("weights", [GRID, COLORS[0]])
    axes.imshow(weights.numpy(), cmap=colors, vmin=0, vmax=float(weights.max()))
    hide_frame(axes)
    source, target = (
        [_letter(token) for token in side.data[0].tolist()] for side in (batch.source, batch.target)
    )
    axes.set_xticks(range(len(source)), source)
    axes.set_yticks(range(len(target)), target)
    axes.set_xlabel("source")
    axes.set_ylabel("target")


def _letter(token: int) -> str:
    return "." if token == EOS else LETTERS[token - len(SPECIALS)]
