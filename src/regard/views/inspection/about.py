"""What a model is, in a line: its kinds and sizes."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from regard.inference.predictor import Predictor

PARTS = ("encoder", "decoder")
SIZES = {"layers": "layer", "heads": "head"}  # counted things, by their setting
Described = dict[str, Any]


def about(predictor: Predictor) -> dict[str, Any]:
    """Name, task, a description in one line, its parts, and the number of parameters."""
    parts = parts_of(predictor.config.model)
    return {
        "name": predictor.folder.resolve().name,
        "task": predictor.task.kind,
        "description": description(parts),
        "parts": parts,
        "parameters": parameters(predictor.engine.inside()),
    }


def parts_of(options: Any) -> list[Described]:
    """The kinds and sizes that are set, for who says them in another language."""
    if getattr(options, "kind", "") == "ngram":
        return [{"part": "ngram", "order": options.order}]
    found = [(name, getattr(options, name, None)) for name in PARTS]
    said = [_part(name, part) for name, part in found if part is not None]
    if pool := getattr(options, "pool", None):
        said.append({"part": "pool", "kind": pool})
    if getattr(options, "head", "") == "crf":
        said.append({"part": "head", "kind": "crf"})
    return said


def _part(name: str, part: Any) -> Described:
    """An encoder or a decoder; what it has not is absent."""
    cell = getattr(part, "cell", None)
    found = {
        "part": name,
        "kind": part.kind,
        "cell": cell,
        "both_ways": cell and getattr(part, "bidirectional", False),
        "attention": cell and getattr(getattr(part, "cross", None), "kind", None),
        **{size: getattr(part, size, None) for size in (*SIZES, "width")},
    }
    return {key: value for key, value in found.items() if value}


def description(parts: Sequence[Described]) -> str:
    """`encoder transformer, 4 layers, 4 heads, width 256`, and so on."""
    return "; ".join(map(_said, parts))


def _said(part: Described) -> str:
    """`encoder recurrent (lstm, both ways), 2 layers, width 256`."""
    if part["part"] == "ngram":
        return f"n-grams of up to {part['order']} symbols"
    if part["part"] == "engine":
        return f"run by {part['kind']}"
    cell = [part["cell"]] if "cell" in part else []
    ways = ["both ways"] if "both_ways" in part else []
    score = [f"attention {part['attention']}"] if "attention" in part else []
    inner = f" ({', '.join([*cell, *ways, *score])})" if cell else ""
    sizes = [_counted(part[name], word) for name, word in SIZES.items() if name in part]
    width = [f"width {part['width']}"] if "width" in part else []
    return ", ".join([f"{part['part']} {part['kind']}{inner}", *sizes, *width])


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'s' if count != 1 else ''}"


def parameters(model: nn.Module) -> int:
    """The numbers that a model has learnt: its weights, those in int8 too, or else its counts."""
    trained = sum(weight.numel() for weight in model.parameters())
    rounded = sum(table.numel() for table in model.buffers() if table.dtype == torch.int8)
    return trained + rounded or sum(table.numel() for table in model.buffers())
