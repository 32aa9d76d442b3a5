"""What a model is, in a line: its kinds and sizes."""

from typing import Any

import torch
from torch import nn

from regard.estimators.base import Estimator

PARTS = ("encoder", "decoder")
SIZES = {"layers": "layer", "heads": "head"}  # counted things, by their setting


def about(estimator: Estimator) -> dict[str, Any]:
    """Name, task, a description in one line, and the number of parameters."""
    return {
        "name": estimator.folder_.resolve().name,
        "task": estimator.task,
        "description": description(estimator.config_.model),
        "parameters": parameters(estimator.model_),
    }


def description(options: Any) -> str:
    """The kinds and sizes that are set: `encoder transformer, 4 layers, 4 heads, width 256`."""
    if getattr(options, "kind", "") == "ngram":
        return f"n-grams of up to {options.order} symbols"
    parts = [(name, getattr(options, name, None)) for name in PARTS]
    said = [f"{name} {_part(part)}" for name, part in parts if part is not None]
    if pool := getattr(options, "pool", None):
        said.append(f"pool {pool}")
    if getattr(options, "head", "") == "crf":
        said.append("head crf")
    return "; ".join(said)


def _part(part: Any) -> str:
    """`recurrent (lstm, both ways), 2 layers, width 256`."""
    cell = [part.cell] if hasattr(part, "cell") else []
    ways = ["both ways"] if getattr(part, "bidirectional", False) else []
    score = [f"attention {part.score}"] if getattr(part, "score", None) else []
    inner = f" ({', '.join([*cell, *ways, *score])})" if cell else ""
    sizes = [_counted(part, name) for name in SIZES if getattr(part, name, None)]
    width = [f"width {part.width}"] if part.width else []
    return ", ".join([part.kind + inner, *sizes, *width])


def _counted(part: Any, name: str) -> str:
    count = getattr(part, name)
    return f"{count} {SIZES[name]}{'s' if count != 1 else ''}"


def parameters(model: nn.Module) -> int:
    """The numbers that a model has learnt: its weights, those in int8 too, or else its counts."""
    trained = sum(weight.numel() for weight in model.parameters())
    rounded = sum(table.numel() for table in model.buffers() if table.dtype == torch.int8)
    return trained + rounded or sum(table.numel() for table in model.buffers())
