"""What a model is, in a line: its kinds and sizes."""

from collections.abc import Sequence
from typing import Any

from regard.inference.predictor import Predictor
from regard.nn.quantize import num_parameters

SENTENCES = {"ngram": "n-grams of up to {order} tokens", "engine": "run by {kind}"}


def about(predictor: Predictor) -> dict[str, Any]:
    """Return name, task, a description in one line, its parts, and the number of parameters."""
    parts = predictor.config.model.describe()
    return {
        "name": predictor.folder.resolve().name,
        "task": predictor.task.kind,
        "description": description(parts),
        "parts": parts,
        "parameters": num_parameters(predictor.engine.inside()),
    }


def description(parts: Sequence[dict[str, Any]]) -> str:
    """Return `encoder transformer, 4 layers, 4 heads, width 256`, and so on."""
    return "; ".join(map(_said, parts))


def _said(part: dict[str, Any]) -> str:
    """Return `encoder recurrent (lstm, both ways), 2 layers, width 256`."""
    if part["part"] in SENTENCES:
        return SENTENCES[part["part"]].format(**part)
    features = {"cell": "{}", "bidirectional": "bidirectional", "attention": "attention {}"}
    inner = ", ".join(said.format(part[name]) for name, said in features.items() if name in part)
    sizes = [
        f"{count} {word}{'s' if count != 1 else ''}"
        for word in ("layer", "head")
        if (count := part.get(f"{word}s")) is not None
    ]
    width = [f"width {part['width']}"] if "width" in part else []
    kind = f"{part['part']} {part['kind']}" + (f" ({inner})" if inner else "")
    return ", ".join([kind, *sizes, *width])
