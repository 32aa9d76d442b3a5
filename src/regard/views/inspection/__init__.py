"""Inspection of a model on one input: `regard.inspect` and `regard inspect`."""

from regard.views.inspection.inspecting import inspect
from regard.views.inspection.value import Inspection

__all__ = ["Inspection", "inspect"]
