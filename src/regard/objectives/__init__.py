"""Objectives: what training makes small. Each gives a sum and a count, never a mean."""

from typing import Protocol

from torch import nn

from regard.data.tensors.padded import Batch
from regard.objectives.cross_entropy import CrossEntropy, Loss
from regard.objectives.label_losses import Absolute, Huber, Labels, Squared, Tags
from regard.objectives.token_losses import Masked, NextSymbol

__all__ = [
    "Absolute",
    "CrossEntropy",
    "Huber",
    "Labels",
    "Loss",
    "Masked",
    "NextSymbol",
    "Objective",
    "Squared",
    "Tags",
]


class Objective(Protocol):
    """The contract of an objective."""

    def count(self, batch: Batch) -> float:
        """What the loss of a batch is divided by."""

    def __call__(self, model: nn.Module, batch: Batch) -> Loss:
        """The loss of a batch."""
