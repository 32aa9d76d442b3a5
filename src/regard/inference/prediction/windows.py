"""Items in windows: what is predicted together, and so how far ahead is read."""

import queue
import threading
from collections.abc import Iterator

from regard.tasks.values import InputItem

FIRST, WINDOW = 256, 4096  # lines of the first window, so that its answers come soon, and of later
CHARACTERS = 2_000_000  # of a window, about: lines may be long


def fixed_windows(items: Iterator[InputItem], start: int = 0) -> Iterator[list[InputItem]]:
    """Windows whose ends depend on the items alone, not on the clock.

    start: how many were answered before. So a command that goes on forms the same batches as one
    that nothing stopped, and writes the same digits. An error of the items comes after those
    before it.
    """
    window: list[InputItem] = []
    size = 0
    try:
        for item in items:
            window.append(item)
            size += len(item.text)
            if len(window) == window_size(start) or size >= CHARACTERS:
                yield window
                start, window, size = start + len(window), [], 0
    except Exception:
        if window:
            yield window
        raise
    if window:
        yield window


def window_size(start: int) -> int:
    """The lines of the window that begins behind so many lines: more and more, up to a limit."""
    return min(WINDOW, max(FIRST, 1 << start.bit_length() >> 1))


def live_windows(items: Iterator[InputItem]) -> Iterator[list[InputItem]]:
    """As many as are there already, so that a slow stream is answered at once."""
    waiting: queue.Queue[InputItem | BaseException | None] = queue.Queue(maxsize=2 * WINDOW)

    def fill() -> None:
        try:
            for item in items:
                waiting.put(item)
            waiting.put(None)
        except BaseException as error:
            waiting.put(error)

    threading.Thread(target=fill, daemon=True).start()
    while True:
        window: list[InputItem] = []
        size = 0
        item = waiting.get()
        while isinstance(item, InputItem):
            window.append(item)
            size += len(item.text)
            if len(window) == WINDOW or size >= CHARACTERS or waiting.empty():
                break
            item = waiting.get()
        if window:
            yield window
        if isinstance(item, BaseException):
            raise item
        if item is None:
            return
