"""A task that small Transformers learn in seconds, for figures of trained models.

Each position has a letter and a number. The target is a number per position.
Shapes: B rows, n positions, D width.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.data.tensors.padded import Padded
from regard.models.transformer_options import TransformerEncoderOptions
from regard.nn.capture_hooks import recording

LETTERS, WIDTH, ROWS, LENGTH, SHIFT = 6, 32, 32, 32, 3
LR, WARMUP = 1e-2, 30
HELD_OUT = 1 << 20  # seed of examples that no training has


class Examples(NamedTuple):
    """Letters, numbers and targets, each (B, n)."""

    letters: Tensor
    numbers: Tensor
    targets: Tensor


def mean_of_letter(letters: Tensor, numbers: Tensor) -> Tensor:
    """Return twice the mean of the numbers (B, n) that have the same letter."""
    same = (letters[:, :, None] == letters[:, None]).float()
    return 2 * (same @ numbers[..., None])[..., 0] / same.sum(-1)


def mirrored(letters: Tensor, numbers: Tensor) -> Tensor:
    """Return the numbers (B, n) in reverse order."""
    return numbers.flip(1)


def shifted(letters: Tensor, numbers: Tensor) -> Tensor:
    """Return the number `SHIFT` positions before each position (B, n); 0 at the start."""
    return torch.cat([torch.zeros_like(numbers[:, :SHIFT]), numbers[:, :-SHIFT]], 1)


Task = Callable[[Tensor, Tensor], Tensor]


def examples(task: Task, seed: int, length: int = LENGTH) -> Examples:
    """Return random examples of a task."""
    generator = torch.Generator().manual_seed(seed)
    letters = torch.randint(LETTERS, (ROWS, length), generator=generator)
    numbers = torch.randn(ROWS, length, generator=generator)
    return Examples(letters, numbers, task(letters, numbers))


class NumberModel(nn.Module):
    """A Transformer encoder with one layer and one head that reads letters and numbers."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        sizes = {"layers": 1, "heads": 1, "width": WIDTH, "feedforward_width": 2 * WIDTH}
        options = TransformerEncoderOptions.model_validate({**sizes, "dropout": 0.0, **settings})
        self.encoder = options.build()
        self.letters, self.numbers = nn.Embedding(LETTERS, WIDTH), nn.Linear(1, WIDTH)
        self.output = nn.Linear(WIDTH, 1)

    def forward(self, letters: Tensor, numbers: Tensor) -> Tensor:
        """Return a number per position (B, n)."""
        x = self.letters(letters) + self.numbers(numbers[..., None])
        found = self.encoder(Padded(x, torch.ones(letters.shape, dtype=torch.bool)))
        return self.output(found.data)[..., 0]


def relative_error(model: NumberModel, batch: Examples) -> Tensor:
    """Return the squared error of a model, relative to that of zeros."""
    found = model(batch.letters, batch.numbers)
    return (found - batch.targets).square().mean() / batch.targets.square().mean()


@torch.no_grad()
def held_out_error(model: NumberModel, task: Task, length: int = LENGTH) -> float:
    """Return the relative error of a model on new examples."""
    return float(relative_error(model, examples(task, HELD_OUT, length)))


@torch.no_grad()
def attention_maps(model: NumberModel, batch: Examples) -> Tensor:
    """Return the attention weights (B, n, n) of a model."""
    with recording(model) as captured:
        model(batch.letters, batch.numbers)
    ((weights,),) = captured.attention.calls.values()
    return weights[:, 0]


def train(
    model: NumberModel, task: Task, steps: int, lr: float = LR, lengths: Sequence[int] = (LENGTH,)
) -> NumberModel:
    """Train a model on new examples in each update, and return it.

    lengths: lengths of the batches, in rotation.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr, weight_decay=0.0)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = lr * min(1, (step + 1) / WARMUP) * (1 - step / steps)
        loss = relative_error(model, examples(task, step, lengths[step % len(lengths)]))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()
