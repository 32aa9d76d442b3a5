"""regard: train, decode and use sequence models from scratch, on your own data."""

import os

# Threads that wait for each other in a busy loop make training up to 15 times slower on a machine
# that does anything else as well. A short wait, then sleep: as fast alone, and robust. OpenMP
# reads this when torch is first imported, so it stands before every other import.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

from typing import TYPE_CHECKING, Any

from regard.errors import UserError
from regard.version import __version__

if TYPE_CHECKING:
    from regard.capturing import capture, silence
    from regard.estimators import (
        Classifier,
        LanguageModel,
        Regressor,
        Request,
        Tagger,
        Transducer,
        load,
    )

__all__ = [
    "Classifier",
    "LanguageModel",
    "Regressor",
    "Request",
    "Tagger",
    "Transducer",
    "UserError",
    "__version__",
    "capture",
    "load",
    "silence",
]


def __getattr__(name: str) -> Any:
    """What needs torch, imported when first used: `regard --help` need not wait for it."""
    if name in ("capture", "silence"):
        from regard import capturing

        return getattr(capturing, name)
    if name in __all__:
        from regard import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'regard' has no attribute {name!r}")
