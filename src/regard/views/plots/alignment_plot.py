"""Plot of attention to long sources: additive, guided, location-aware and monotonic.

Small models learn to remove repetitions: "aaabb" becomes "ab". The source is long, and all its
positions of one letter look alike.

T target length, S source length.
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
    select_kinds,
)
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WAYS: dict[str, tuple[str, dict[str, float]]] = {  # attention, and settings of the objective
    "additive": ("additive", {}),
    "guided": ("additive", {"guided_attention": 1.0}),
    "location": ("location", {}),
    "monotonic": ("monotonic", {}),
}
LETTERS = "abcdef"
SHORTEST, LONGEST = 6, 12  # letters of a target
FEWEST, MOST = 2, 6  # times that a letter is repeated
WIDTH, ROWS, STEPS, LR, WARMUP, WINDOW = 48, 24, 250, 4e-3, 30, 10
SHOWN = 1 << 20  # seed of the example


class Learned(NamedTuple):
    """A trained model, and the loss per token of each step."""

    model: nn.Module
    losses: list[float]


def examples(seed: int, rows: int, times: int = 1) -> Batch:
    """Return sources with repeated letters, and targets with each run of them once.

    times: factor of the lengths.
    """
    generator = torch.Generator().manual_seed(seed)

    def sample(low: int, high: int, count: int) -> list[int]:
        return torch.randint(low, high + 1, (count,), generator=generator).tolist()

    sources, targets = [], []
    for length in sample(SHORTEST * times, LONGEST * times, rows):
        first, *steps = sample(1, len(LETTERS) - 1, length)
        letters = [first]
        for step in steps:  # never the letter before
            letters.append((letters[-1] + step) % len(LETTERS))
        word = [len(SPECIALS) + letter for letter in letters]
        counts = zip(word, sample(FEWEST, MOST, length), strict=True)
        sources.append([*(token for token, count in counts for _ in range(count)), EOS])
        targets.append([*word, EOS])
    return Batch(pad(sources), pad(targets))


def train(cross: Any, settings: dict[str, float], steps: int, seed: int = 0) -> Learned:
    """Return a model after a short training, with this attention and settings of the objective."""
    torch.manual_seed(seed)
    side: dict[str, Any] = {"kind": "recurrent", "width": WIDTH, "layers": 1, "dropout": 0.0}
    tree = {"encoder": side, "decoder": side | {"cross": cross}, "embedding_width": 0}
    tokens = len(SPECIALS) + len(LETTERS)
    options = EncoderDecoderOptions.model_validate(tree | {"ctc": "ctc_weight" in settings})
    model = options.build(InputShape("text", tokens), tokens, shared=False)
    objective, losses = CrossEntropy(label_smoothing=0.0, **settings), []
    optimizer = torch.optim.AdamW(model.parameters(), LR)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = LR * min(1, (step + 1) / WARMUP) * (1 - step / steps)
        loss = objective(model, examples(seed * steps + step, ROWS))
        optimizer.zero_grad()
        (loss.sum / loss.count).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(float(loss.parts["nll"]) / loss.count)
    return Learned(model.eval(), losses)


def alignment(model: nn.Module, batch: Batch) -> Tensor:
    """Return the attention to the source (T, S) of the only row of a batch."""
    with torch.no_grad(), recording() as captured:
        model(batch)
    return captured.alignment()[0]


def plot_alignments(args: PlotArgs) -> "Figure":
    """Plot the attention of each way on the same source, and the loss over the training."""
    ways = select_kinds(args.kinds, list(WAYS))
    figure = new_figure(12.0, 1.7 + 1.5 * len(ways), "Attention to a long source")
    grid: Any = figure.add_gridspec(len(ways), 2, width_ratios=[1.9, 1])
    curves = figure.add_subplot(grid[:, 1])
    batch = examples(SHOWN, 1)
    for row, way in enumerate(ways):
        learned, color = train(*WAYS[way], STEPS), COLORS[list(WAYS).index(way)]
        axes = figure.add_subplot(grid[row, 0])
        _plot_map(axes, alignment(learned.model, batch), batch, row == len(ways) - 1)
        axes.set_title(way, color=color)
        smooth = torch.tensor(learned.losses).unfold(0, min(WINDOW, STEPS), 1).mean(-1)
        curves.plot(range(STEPS - len(smooth), STEPS), smooth, color=color, label=way)
    curves.set_title("Loss per token on new examples", pad=14)
    add_subtitle(curves, "remove repetitions: aaabb becomes ab")
    curves.set_xlabel("update")
    curves.set_ylim(bottom=0)
    curves.legend()
    return figure


def _plot_map(axes: "Axes", weights: Tensor, batch: Batch, is_last: bool) -> None:
    """Plot the weights (T, S) of the letters; darker cells have larger weights."""
    from matplotlib.colors import LinearSegmentedColormap

    colors = LinearSegmentedColormap.from_list("weights", [GRID, COLORS[0]])
    axes.imshow(weights.numpy(), cmap=colors, vmin=0, vmax=1, aspect="auto")
    hide_frame(axes)
    assert batch.source is not None and batch.target is not None
    sides = [
        [_letter(token) for token in side.data[0].tolist()] for side in (batch.source, batch.target)
    ]
    axes.set_xticks(range(len(sides[0])), sides[0] if is_last else [""] * len(sides[0]), fontsize=7)
    axes.set_yticks(range(len(sides[1])), sides[1], fontsize=7)


def _letter(token: int) -> str:
    return "." if token == EOS else LETTERS[token - len(SPECIALS)]
