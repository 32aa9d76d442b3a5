"""What an inspection gives: one value that becomes JSON, a page, a picture or lines of text.

H heads, T target tokens, S source tokens, D width of a layer.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from torch import Tensor

from regard.core.version import __version__
from regard.tasks.questions.question import Axis, QuestionFacts

FORMAT = 1  # of the dictionary; readers may refuse what they do not know
DIGITS = 6  # behind the point
Part = Literal["encoder", "decoder", "cross", "pooling"]
Way = Literal["forward", "backward"]


@dataclass(frozen=True)
class AttentionMap:
    """The attention of one layer. heads: (H, rows, columns), each row sums to 1; entropy: of each
    head, in nats, averaged over rows; ablation_delta: change of the log probability of the output
    (or of the predicted number) when a head is ablated."""

    name: str
    part: Part
    layer: int
    rows: Axis
    columns: Axis
    heads: Tensor
    entropy: tuple[float, ...]
    ablation_delta: tuple[float, ...] = ()


@dataclass(frozen=True)
class Gate:
    """One gate of a recurrent layer over time, or its output (`hidden`). mean: over the units;
    units: (T, D), or None where that would be too much."""

    name: str
    part: Part
    layer: int
    direction: Way
    gate: str
    rows: Axis
    mean: tuple[float, ...]
    units: Tensor | None


@dataclass(frozen=True)
class Saliency:
    """How strongly each row depends on each column: (rows, columns) norms of gradients."""

    rows: Axis
    columns: Axis
    values: Tensor
    decoder_inputs: "Saliency | None" = None  # saliency of what the decoder has read

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON; of six digits, since the surer an answer, the smaller its gradients."""
        values = [[significant(value) for value in row] for row in self.values.double().tolist()]
        found: dict[str, Any] = {"rows": self.rows, "columns": self.columns, "values": values}
        if self.decoder_inputs is not None:
            found["decoder_inputs"] = self.decoder_inputs.as_dict()
        return found


@dataclass(frozen=True, kw_only=True)
class Inspection(QuestionFacts):
    """All that is seen while a model predicts from one source; see docs/inspect.md.

    model: as `about` gives it. attention, saliency, gates: what is inside.
    """

    model: dict[str, Any]
    attention: tuple[AttentionMap, ...] = ()
    saliency: Saliency | None = None
    gates: tuple[Gate, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """All of it as dictionaries, lists, texts and numbers of six decimals: ready for JSON.

        Only saliency has six digits, wherever the point is.
        """
        found = {
            "format": FORMAT,
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
        ready = {name: plain(value) for name, value in found.items()}
        return ready | {"saliency": self.saliency and self.saliency.as_dict()}


def significant(number: float) -> float | None:
    """A number of six digits, wherever its point is; None for what is no number."""
    return float(f"{number:.{DIGITS}g}") if math.isfinite(number) else None


def plain(value: Any) -> Any:
    """The value as JSON has it: lists, numbers of six decimals, None for what is no number."""
    if isinstance(value, Tensor):
        numbers = value.double().numpy()
        whole = bool(np.isfinite(numbers).all())
        return numbers.round(DIGITS).tolist() if whole else plain(numbers.tolist())
    if isinstance(value, float):
        return round(value, DIGITS) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value
