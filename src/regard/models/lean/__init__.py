"""Lean twins of models: the same numbers with less ado.

A step of a small model on a CPU is dozens of tiny operations, and what Python and torch do around
each of them takes longer than the arithmetic. Here the weights are taken out of the modules once,
vectors stay (rows, D), and what does not change from step to step is computed before the first.
"""

from typing import Any

from torch import nn

from regard.models.generator import Generator
from regard.models.lean.recurrent_stepper import recurrent_twin
from regard.models.lean.stepper import LeanStepper
from regard.models.lean.transformer_stepper import transformer_twin
from regard.models.transformer import TransformerDecoder

__all__ = ["LeanStepper", "lean"]


def lean(model: nn.Module) -> Any:
    """The lean stepper of a model, or the model itself where it has none."""
    if not isinstance(model, Generator):
        return model
    kind = transformer_twin if isinstance(model.decoder, TransformerDecoder) else recurrent_twin
    return kind(model) or model
