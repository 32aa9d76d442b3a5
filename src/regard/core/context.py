"""Thread-local values that are set for the duration of a block: `with SLOT.set(value):`.

Examples are the active recorder, ablated heads and the random generator. Code deep inside a model
reads these values, so they need not be passed through every signature. Other threads do not see
them.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")

_local = threading.local()


class Slot(Generic[Value]):
    """A named thread-local value; `default` in threads that have not set it."""

    def __init__(self, name: str, default: Value) -> None:
        self.name = name
        self.default = default

    def get(self) -> Value:
        """Return the value in this thread."""
        value: Any = getattr(_local, self.name, self.default)
        return value

    @contextlib.contextmanager
    def set(self, value: Value) -> Iterator[None]:
        """Set the value for this thread inside the block."""
        previous = self.get()
        setattr(_local, self.name, value)
        try:
            yield
        finally:
            setattr(_local, self.name, previous)
