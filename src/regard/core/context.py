"""Values that hold in one thread for a while: `with SLOT.set(value):`.

Code deep inside a model asks for them (who records, which heads are ablated, where noise comes
from), so that no signature on the way has to carry them. Other threads never see them.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")

_here = threading.local()


class Slot(Generic[Value]):
    """A value of the current thread, by name; `default` where nothing was set."""

    def __init__(self, name: str, default: Value) -> None:
        self.name = name
        self.default = default

    def get(self) -> Value:
        """The value in this thread."""
        found: Any = getattr(_here, self.name, self.default)
        return found

    @contextlib.contextmanager
    def set(self, value: Value) -> Iterator[None]:
        """Within, this thread has another value."""
        before = self.get()
        setattr(_here, self.name, value)
        try:
            yield
        finally:
            setattr(_here, self.name, before)
