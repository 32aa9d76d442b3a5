"""Warnings about events that clients can cause at any rate: each kind at most once per minute."""

import time
from collections.abc import Callable

from regard.core.errors import warn

INTERVAL = 60.0  # seconds between two warnings of a kind


class ThrottledLog:
    """Warnings by kind. A warning includes the number of events since the last one."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, write: Callable[[str], None] = warn
    ) -> None:
        self.clock, self.write = clock, write
        self._last: dict[str, float] = {}
        self._num_skipped: dict[str, int] = {}

    def report(self, kind: str, detail: str = "") -> None:
        """Print a warning, unless there was one of this kind within the last minute."""
        now, last = self.clock(), self._last.get(kind)
        if last is not None and now - last < INTERVAL:
            self._num_skipped[kind] = self._num_skipped.get(kind, 0) + 1
            return
        self._last[kind] = now
        skipped = self._num_skipped.pop(kind, 0)
        before = f" ({skipped:,} more since the last warning)" if skipped else ""
        self.write(f"{kind}{f': {detail}' if detail else ''}{before}")
