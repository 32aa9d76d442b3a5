"""The result of an inspection, for JSON, HTML pages, figures and the terminal.

Shapes: H heads, T tokens, D width of a layer.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from torch import Tensor

from regard.core.version import __version__
from regard.tasks.inspection.forced_pass import ForcedOutput, TokenAxis

FORMAT_VERSION = 1  # of the JSON
DIGITS = 6
ModulePart = Literal["encoder", "decoder", "cross", "pooling"]
Direction = Literal["forward", "backward"]


@dataclass(frozen=True)
class AttentionMap:
    """The attention of one layer.

    heads: (H, rows, columns); each row sums to 1. entropy: per head, in nats, averaged over rows.
    ablation_delta: per head, the change of the log probability of the output (or of the predicted
    number) when the head is ablated.
    """

    name: str
    part: ModulePart
    layer: int
    rows: TokenAxis
    columns: TokenAxis
    heads: Tensor
    entropy: tuple[float, ...]
    ablation_delta: tuple[float, ...] = ()


@dataclass(frozen=True)
class Gate:
    """One gate of a recurrent layer over time, or the output of the layer (`hidden`).

    mean: mean over units for each token. units: (T, D), or None if there are too many values.
    """

    name: str
    part: ModulePart
    layer: int
    direction: Direction
    gate: str
    rows: TokenAxis
    mean: tuple[float, ...]
    units: Tensor | None


@dataclass(frozen=True)
class Saliency:
    """Gradient norms (rows, columns). decoder_inputs: saliency of the tokens the decoder reads."""

    rows: TokenAxis
    columns: TokenAxis
    values: Tensor
    decoder_inputs: "Saliency | None" = None

    def as_dict(self) -> dict[str, Any]:
        """Return the saliency for JSON, with six significant digits.

        Fixed decimals would lose the small gradients of confident outputs.
        """
        values = [[significant(value) for value in row] for row in self.values.double().tolist()]
        found: dict[str, Any] = {"rows": self.rows, "columns": self.columns, "values": values}
        if self.decoder_inputs is not None:
            found["decoder_inputs"] = self.decoder_inputs.as_dict()
        return found


@dataclass(frozen=True, kw_only=True)
class Inspection(ForcedOutput):
    """The output of a model for one source, and the model's internals; see docs/inspect.md.

    model: the description from `describe_model`.
    """

    model: dict[str, Any]
    attention: tuple[AttentionMap, ...] = ()
    saliency: Saliency | None = None
    gates: tuple[Gate, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the inspection for JSON, with six decimals (saliency: six significant digits)."""
        found = {
            "format": FORMAT_VERSION,
            "version": __version__,
            "model": self.model,
            "source": vars(self.source),
            "target": {**vars(self.target), "forced": self.forced},
            "inputs": self.inputs,
            "score": self.score,
            "truncated": self.truncated,
            "unknown_tokens": self.unknown_tokens,
            "steps": [step.as_dict() for step in self.steps],
            "attention": [vars(one) for one in self.attention],
            "saliency": None,
            "gates": [
                vars(one) | {"units": () if one.units is None else one.units} for one in self.gates
            ],
            "tree": self.tree,
            "notes": [str(note) for note in self.notes],
            "note_keys": [note.as_dict() for note in self.notes],
        }
        ready = {name: to_json(value) for name, value in found.items()}
        return ready | {"saliency": self.saliency and self.saliency.as_dict()}


def significant(number: float) -> float | None:
    """Return a number with six significant digits; None if it is not finite."""
    return float(f"{number:.{DIGITS}g}") if math.isfinite(number) else None


def to_json(value: Any) -> Any:
    """Convert tensors and tuples to lists, round numbers to six decimals; None if not finite."""
    if isinstance(value, Tensor):
        numbers = value.double().numpy()
        is_finite = bool(np.isfinite(numbers).all())
        return numbers.round(DIGITS).tolist() if is_finite else to_json(numbers.tolist())
    if isinstance(value, float):
        return round(value, DIGITS) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: to_json(one) for name, one in value.items()}
    return [to_json(one) for one in value] if isinstance(value, list | tuple) else value
