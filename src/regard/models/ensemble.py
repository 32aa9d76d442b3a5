"""Ensembles, which average the probabilities of several models.

B sentences (rows of the batch), k beams per sentence, T target length, V vocabulary, N target
tokens without padding.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from regard.data.tensors.padded import Batch, Outputs, Padded
from regard.data.tensors.state import State
from regard.nn.fast import fast


class Ensemble(nn.Module):
    """An ensemble of models with the same vocabularies, in eval mode."""

    why_not_inspectable = "ensembles cannot be inspected; inspect each model separately"

    def __init__(self, models: Sequence[nn.Module]) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)
        self._steppers = [fast(model.eval()) for model in models]

    def forward(self, batch: Batch, inputs: Tensor | None = None) -> Outputs:
        """Return the log probabilities (N, V) of all target tokens but padding."""
        return Outputs(_mean([model(batch, inputs).logits for model in self.models]))

    def start(self, source: Padded) -> State:
        """Return the decoder states of all models before the first token, as one state."""
        return _joined([stepper.start(source) for stepper in self._steppers])

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the log probabilities (k*B, T, V) after each token, and the new state."""
        parts = zip(self._steppers, state.memory, state.past, strict=True)
        found = [stepper.step(tokens, State(*own)) for stepper, *own in parts]
        return _mean([logits for logits, _ in found]), _joined([after for _, after in found])


def _joined(states: list[State]) -> State:
    return State(tuple(one.memory for one in states), tuple(one.past for one in states))


def _mean(logits: list[Tensor]) -> Tensor:
    """Return the logarithm of the mean of the models' probabilities."""
    each = torch.stack([one.float().log_softmax(-1) for one in logits])
    return each.logsumexp(0) - math.log(len(logits))
