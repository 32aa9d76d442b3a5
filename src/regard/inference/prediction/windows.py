"""Windows: lists of input items that are predicted together, so that memory is bounded."""

import queue
import threading
from collections.abc import Iterator

from regard.tasks.values import InputItem

MIN_ITEMS, MAX_ITEMS = 256, 4096  # items per window: small at first, for early output
MAX_CHARS = 2_000_000  # approximate maximum characters per window, for long lines
BYTES_PER_CHARACTER = 32  # of images: a window has at most 64 MB


def fixed_windows(items: Iterator[InputItem], start: int = 0) -> Iterator[list[InputItem]]:
    """Yield windows whose boundaries depend only on the items, not on the clock.

    A resumed command thus forms the same batches as an uninterrupted command, and writes the same
    digits. start: number of items done before. If an item raises an error, the window with the
    items before the error is yielded first.
    """
    window: list[InputItem] = []
    size = 0
    try:
        for item in items:
            window.append(item)
            size += item_size(item)
            if len(window) == window_size(start) or size >= MAX_CHARS:
                yield window
                start, window, size = start + len(window), [], 0
    except Exception:
        if window:
            yield window
        raise
    if window:
        yield window


def item_size(item: InputItem) -> int:
    """Return the characters of an item; for images, a number that bounds their memory."""
    return len(item.text) + getattr(item.source, "nbytes", 0) // BYTES_PER_CHARACTER


def window_size(start: int) -> int:
    """Return the size of the window after `start` items; sizes grow up to MAX_ITEMS."""
    return min(MAX_ITEMS, max(MIN_ITEMS, 1 << start.bit_length() >> 1))


def live_windows(items: Iterator[InputItem]) -> Iterator[list[InputItem]]:
    """Yield windows of the items that have arrived, so that a slow stream is not delayed."""
    pending: queue.Queue[InputItem | BaseException | None] = queue.Queue(maxsize=2 * MAX_ITEMS)

    def fill() -> None:
        try:
            for item in items:
                pending.put(item)
            pending.put(None)
        except BaseException as error:
            pending.put(error)

    threading.Thread(target=fill, daemon=True).start()
    while True:
        window: list[InputItem] = []
        size = 0
        item = pending.get()
        while isinstance(item, InputItem):
            window.append(item)
            size += item_size(item)
            if len(window) == MAX_ITEMS or size >= MAX_CHARS or pending.empty():
                break
            item = pending.get()
        if window:
            yield window
        if isinstance(item, BaseException):
            raise item
        if item is None:
            return
