"""One-line description of a model: its parts and their sizes."""

from collections.abc import Sequence
from typing import Any

from regard.inference.predictor import Predictor
from regard.nn.quantize import num_parameters

TEMPLATES = {"ngram": "n-grams of up to {order} tokens", "engine": "run by {kind}"}


def describe_model(predictor: Predictor) -> dict[str, Any]:
    """Return name, task, description, parts and number of parameters of a model."""
    parts = predictor.config.model.describe()
    return {
        "name": predictor.folder.resolve().name,
        "task": predictor.task.kind,
        "description": description(parts),
        "parts": parts,
        "parameters": num_parameters(predictor.engine.torch_module()),
    }


def description(parts: Sequence[dict[str, Any]]) -> str:
    """Return a text such as `encoder transformer, 4 layers, 4 heads, width 256; ...`."""
    return "; ".join(map(_describe_part, parts))


def _describe_part(part: dict[str, Any]) -> str:
    """Return a text such as `encoder recurrent (lstm, bidirectional), 2 layers, width 256`."""
    if part["part"] in TEMPLATES:
        return TEMPLATES[part["part"]].format(**part)
    templates = {
        "cell": "{}",
        "bidirectional": "bidirectional",
        "attention": "attention {}",
        "kv_heads": "kv_heads {}",
    }
    features = ", ".join(
        template.format(part[name]) for name, template in templates.items() if name in part
    )
    sizes = [
        f"{count} {word}{'s' if count != 1 else ''}"
        for word in ("layer", "head")
        if (count := part.get(f"{word}s")) is not None
    ]
    width = [f"width {part['width']}"] if "width" in part else []
    kind = f"{part['part']} {part['kind']}" + (f" ({features})" if features else "")
    return ", ".join([kind, *sizes, *width])
