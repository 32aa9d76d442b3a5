"""Plot of batch statistics on text: why Transformers have layer norm.

A small language model is trained on the documentation of Python. The statistics of a batch differ
from the running statistics that evaluation uses, and they reveal later words to earlier ones.
"""

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from regard.models.transformer_options import CausalTransformerOptions
from regard.nn.norms import Norm
from regard.nn.norms.batch import BatchNorm, PowerNorm, mean
from regard.views.figures.style import COLORS, add_subtitle, new_figure, panels, select_kinds
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NORMS = ("layer", "batch", "power")
WIDTH, WORDS, ROWS, STEPS, WINDOW = 32, 500, 8, 200, 20
HELD_OUT = 100  # sentences


def sentences() -> list[list[int]]:
    """Return sentences of the documentation of Python as word ids; 0: rare words."""
    from pydoc_data.topics import topics

    lines = [line.split() for text in topics.values() for line in text.split(". ")]
    lines = [words[:24] for words in lines if len(words) > 3]
    counts = Counter(word for words in lines for word in words)
    ids = {word: i for i, (word, _) in enumerate(counts.most_common(WORDS - 1), 1)}
    return [[ids.get(word, 0) for word in words] for words in lines]


class Watched:
    """Records, at each step, how far batch statistics are from running statistics."""

    def __init__(self, model: nn.Module) -> None:
        self.distances: list[float] = []
        self._now: list[float] = []
        for part in model.modules():
            if isinstance(part, Norm):
                part.register_forward_pre_hook(self._compare)

    def _compare(self, norm: nn.Module, inputs: tuple[Tensor, Tensor]) -> None:
        x, real = inputs[0].detach(), inputs[1]
        if not norm.training:
            return
        if isinstance(norm, BatchNorm):
            here, running = mean((x - mean(x, real)) ** 2, real), norm.running_variance
        elif isinstance(norm, PowerNorm):
            here, running = mean(x**2, real), norm.power
        else:  # evaluation uses the statistics of training: those of each vector
            here = running = torch.ones(())
        self._now.append(float(((here - running).abs() / running).mean()))

    def end_step(self) -> None:
        """Record the mean over all norms of the model."""
        self.distances.append(sum(self._now) / len(self._now))
        self._now.clear()


class WordModel(nn.Module):
    """A causal Transformer over words, with this norm."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        sizes: dict[str, Any] = {"layers": 2, "width": WIDTH, "heads": 2, "feedforward_width": 64}
        self.decoder = CausalTransformerOptions(**sizes, dropout=0.0, norm=kind).build()
        self.table, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, lines: list[list[int]]) -> Tensor:
        """Return the loss of a batch of sentences."""
        rows = [torch.tensor(words) for words in lines]
        tokens = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1)
        real = tokens[:, 1:] >= 0
        x = self.table(tokens[:, :-1].clamp(min=0))
        hidden, _ = self.decoder(x, self.decoder.start(None), real)
        return nn.functional.cross_entropy(self.head(hidden[real]), tokens[:, 1:][real])


def train(kind: str, steps: int) -> tuple[list[float], list[float], list[float]]:
    """Return the distance of statistics, the training loss and the held-out loss at each step.

    The held-out loss uses running statistics; it is computed every tenth step.
    """
    torch.manual_seed(0)
    lines, chance, model = sentences(), random.Random(0), WordModel(kind)
    chance.shuffle(lines)
    watched, losses, held_out = Watched(model), [], []
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(steps):
        loss = model(chance.sample(lines[HELD_OUT:], ROWS))
        watched.end_step()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        if step % 10 == 9:
            with torch.no_grad():
                held_out.append(float(model.eval()(lines[:HELD_OUT])))
            model.train()
    return watched.distances, losses, held_out


def plot_norm_statistics(args: PlotArgs) -> "Figure":
    """Plot the distance of batch and running statistics over the steps of a training on text."""
    names = select_kinds(args.kinds, NORMS)
    figure = new_figure(9.2, 3.4, "Batch statistics on text")
    left, right = panels(figure, 1, 2)
    for name in names:
        color = COLORS[NORMS.index(name)]
        distances, losses, held_out = train(name, STEPS)
        left.plot(distances, color=color, linewidth=0.6, alpha=0.35)
        ends = range(WINDOW - 1, STEPS)
        left.plot(ends, _smooth(distances), color=color, label=name)
        right.plot(ends, _smooth(losses), color=color, linewidth=1, linestyle=(0, (4, 1.5)))
        right.plot(range(9, STEPS, 10), held_out, color=color)
    left.set_title("Distance to the running statistics", pad=14)
    add_subtitle(left, "of the variance (layer, batch) or mean square (power), relative")
    left.set_ylim(-0.02, 0.8)
    right.set_title("Loss: held out (solid), training (dashed)", pad=14)
    add_subtitle(right, "held out: with running statistics")
    for axes in (left, right):
        axes.set_xlabel("step")
    left.legend()
    return figure


def _smooth(values: list[float]) -> Tensor:
    """Return the mean over a moving window."""
    return torch.tensor(values).unfold(0, WINDOW, 1).mean(-1)
