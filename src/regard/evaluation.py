"""Evaluation: one path for validation in training and for `regard evaluate`."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from regard.data.read import Example, Pair
from regard.objectives import Objective
from regard.search import Search
from regard.tasks.base import Prediction, Task


@dataclass(frozen=True)
class Evaluation:
    """Scores by name, the loss a symbol, and the predictions they were made from."""

    scores: dict[str, float]
    loss: float
    predictions: list[Prediction]


def evaluate(
    task: Task,
    model: nn.Module,
    examples: Sequence[Example],
    objective: Objective,
    search: Search,
    batch_size: int = 64,
) -> Evaluation:
    """The measures of a model on examples, perplexity among them."""
    model.eval()
    sources = [example.source for example in examples]
    predictions = task.predict(model, sources, search, batch_size=batch_size)
    scores = task.score([p.text for p in predictions], examples)
    loss, parts = _losses(task, model, examples, objective, batch_size)
    if "nll" in parts:
        scores["perplexity"] = math.exp(min(parts["nll"], 700.0))
    return Evaluation(scores, loss, predictions)


@torch.inference_mode()
def _losses(
    task: Task,
    model: nn.Module,
    examples: Sequence[Example],
    objective: Objective,
    batch_size: int,
) -> tuple[float, dict[str, float]]:
    """The training loss and its parts, a symbol, over all references."""
    pairs = [Pair(e.source, reference, 0) for e in examples for reference in e.references]
    corpus = task.corpus(pairs)
    order = corpus.lengths.max(1).argsort(kind="stable")
    device = next(model.parameters()).device
    total, count, parts = 0.0, 0, Counter[str]()
    for start in range(0, len(order), batch_size):
        loss = objective(model, corpus.batch(order[start : start + batch_size]).to(device))
        total += float(loss.sum)
        parts.update(loss.parts)
        count += loss.count
    return total / count, {name: part / count for name, part in parts.items()}
