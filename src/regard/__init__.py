"""regard: train, decode, inspect and serve sequence models from scratch, on your own data."""

import os

# OpenMP threads that spin while they wait make training up to 15 times slower on a busy machine.
# A short spin, then sleep, is as fast on an idle one. OpenMP reads this variable when torch is
# first imported, so it is set before every other import.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

from importlib import import_module
from typing import TYPE_CHECKING, Any

from regard.core.errors import UserError
from regard.core.version import __version__

if TYPE_CHECKING:
    from regard.estimators import (
        Classifier,
        Constraints,
        LanguageModel,
        Regressor,
        Synthesizer,
        Tagger,
        Transducer,
        load,
    )
    from regard.inference.model_capture import ablate, attention_modules, capture
    from regard.views.inspection import Inspection, inspect

__all__ = [
    "Classifier",
    "Constraints",
    "Inspection",
    "LanguageModel",
    "Regressor",
    "Synthesizer",
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
LAZY_MODULES = {
    "ablate": "inference.model_capture",
    "attention_modules": "inference.model_capture",
    "capture": "inference.model_capture",
    "Inspection": "views.inspection",
    "inspect": "views.inspection",
}  # modules of the names that regard.estimators does not define


def __getattr__(name: str) -> Any:
    """Import a name that needs torch on first use, so that `regard --help` stays fast."""
    if name not in __all__:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    return getattr(import_module(f"regard.{LAZY_MODULES.get(name, 'estimators')}"), name)


def __dir__() -> list[str]:
    """Return the public names, without importing them."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
