"""How far the answers are: a bar in a terminal, a line now and then elsewhere."""

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from regard.core.errors import info
from regard.core.formatting import duration

SOON = 2.0  # seconds until a bar is worth showing
EVERY = 10.0  # seconds between plain lines


@dataclass
class PredictionProgress:
    """`with closing(PredictionProgress(lambda: 1000, "lines")) as progress: progress.advance(10)`.

    count: how many there are, if that can be known; it is called when something is to be shown,
    which it is not for little work. done: how many were predicted before. quiet: shows nothing.
    printed: whether the predictions go to the terminal as well.
    """

    count: Callable[[], int | None]
    unit: str
    done: int = 0
    quiet: bool = False
    printed: bool = True

    def __post_init__(self) -> None:
        self.before = self.done
        self.begun = self.shown = time.monotonic()
        self.bar: Bar | None = None
        self.lock = threading.Lock()
        among = self.printed and sys.stdout.isatty()  # a bar would be among the predictions
        self.live = not self.quiet and sys.stderr.isatty() and not among

    def close(self) -> None:
        """Take the bar away."""
        if self.bar:
            self.bar.stop()

    def advance(self, count: int) -> None:
        """So many more are answered. Any thread may say so."""
        with self.lock:
            self.done += count
            now = time.monotonic()
            if self.live and now - self.begun >= SOON:
                self._draw()
            elif not self.live and not self.quiet and now - self.shown >= EVERY:
                self.shown = now
                info(self.line())

    @cached_property
    def total(self) -> int | None:
        """How many there are, if that is known; counted once."""
        return self.count()

    def line(self) -> str:
        """How many are answered, how fast, and how long the others will take."""
        seconds = max(time.monotonic() - self.begun, 1e-6)
        speed = (self.done - self.before) / seconds
        total = self.total
        of = f" of {total:,}" if total is not None else ""
        parts = [f"{self.done:,}{of} {self.unit}", f"{speed:,.0f} {self.unit}/s"]
        if total is not None and speed:
            parts.append(f"{duration(max(0, total - self.done) / speed)} left")
        return " | ".join(parts)

    def _draw(self) -> None:
        """The bar, which begins late, so that short work shows none."""
        if self.bar is None:
            columns = (BarColumn(bar_width=20), TextColumn("{task.description}"))
            self.bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self.task = self.bar.add_task("", total=self.total)
            self.bar.start()
        self.bar.update(self.task, completed=self.done, description=self.line())
