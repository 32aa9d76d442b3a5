"""regard: train, decode, inspect and serve sequence models from scratch, on your own data."""

import os

# Threads that wait for each other in a busy loop make training up to 15 times slower on a machine
# that does anything else as well. A short wait, then sleep: as fast alone, and robust. OpenMP
# reads this when torch is first imported, so it stands before every other import.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

from importlib import import_module
from typing import TYPE_CHECKING, Any

from regard.core.errors import UserError
from regard.core.version import __version__

if TYPE_CHECKING:
    from regard.estimators import (
        Classifier,
        LanguageModel,
        Regressor,
        Request,
        Tagger,
        Transducer,
        load,
    )
    from regard.inference.model_capture import ablate, attention_modules, capture
    from regard.views.inspection import Inspection, inspect

__all__ = [
    "Classifier",
    "Inspection",
    "LanguageModel",
    "Regressor",
    "Request",
    "Tagger",
    "Transducer",
    "UserError",
    "__version__",
    "ablate",
    "attention_modules",
    "capture",
    "inspect",
    "load",
]
ROOMS = {
    "ablate": "inference.model_capture",
    "attention_modules": "inference.model_capture",
    "capture": "inference.model_capture",
    "Inspection": "views.inspection",
    "inspect": "views.inspection",
}  # the modules of names that are not among the estimators


def __getattr__(name: str) -> Any:
    """What needs torch, imported when first used: `regard --help` need not wait for it."""
    if name not in __all__:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    return getattr(import_module(f"regard.{ROOMS.get(name, 'estimators')}"), name)
