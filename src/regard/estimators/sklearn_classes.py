"""Errors and warnings that are also those of scikit-learn, if the caller has imported it.

A caller that catches `sklearn.exceptions.NotFittedError` has imported scikit-learn. So it is never
imported here.
"""

import functools
import sys
from typing import Any

from regard.core.errors import UserError


class NotFitted(UserError, AttributeError):
    """The error for an estimator that is not fitted yet."""

    def __reduce__(self) -> tuple[Any, ...]:
        return not_fitted, (self.message,)


def not_fitted(message: str) -> NotFitted:
    """Return the error, which is also a NotFittedError if scikit-learn is imported."""
    exceptions = sys.modules.get("sklearn.exceptions")
    return NotFitted(message) if exceptions is None else _combined(exceptions)(message)


@functools.lru_cache(maxsize=1)
def _combined(exceptions: Any) -> type[NotFitted]:
    return type("NotFitted", (NotFitted, exceptions.NotFittedError), {"__module__": __name__})


def conversion_warning() -> type[Warning]:
    """Return DataConversionWarning if scikit-learn is imported, otherwise UserWarning."""
    exceptions: Any = sys.modules.get("sklearn.exceptions")
    return UserWarning if exceptions is None else exceptions.DataConversionWarning
