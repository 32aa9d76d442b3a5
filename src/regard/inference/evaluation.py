"""Evaluation: one path for validation in training and for `regard evaluate`."""

from collections.abc import Sequence
from typing import Any

from torch import nn

from regard.data.reading.read import Example
from regard.objectives import Objective
from regard.tasks.task import Evaluation, Task

__all__ = ["Evaluation", "evaluate"]


def evaluate(
    task: Task,
    model: Any,
    examples: Sequence[Example],
    objective: Objective,
    search: Any,
    batch_size: int = 64,
) -> Evaluation:
    """The measures of a model on examples, those of its loss among them; of an engine without."""
    if isinstance(model, nn.Module):
        model.eval()
    return task.evaluate(model, examples, objective, search, batch_size)
