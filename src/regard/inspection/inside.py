"""What is seen inside a model while it answers: attention, its heads silenced, gradients, gates.

R parts of the answer, H heads, T rows, S columns, D width of a layer.
"""

from dataclasses import dataclass

from regard.inspection.question import Question
from regard.inspection.value import Axis, Gate, Map, Part, Saliency

AXES: dict[Part, tuple[Axis, Axis]] = {
    "encoder": ("source", "source"),
    "decoder": ("target", "inputs"),
    "cross": ("target", "source"),
    "pool": ("one", "source"),
}
UNITS = 400_000  # numbers of gates that are kept one by one; of more only the means are


@dataclass(frozen=True)
class Inside:
    """What was seen, and what could not be."""

    attention: tuple[Map, ...] = ()
    saliency: Saliency | None = None
    gates: tuple[Gate, ...] = ()
    notes: tuple[str, ...] = ()


def inside(question: Question, rows: Axis, whole: bool = True) -> Inside:
    """All that can be seen. rows: what the parts of the answer are, target symbols or one; whole:
    whether one pass scores them all, so that heads can be silenced."""
    return Inside()
