"""Progress of `regard predict`: a bar in a terminal, otherwise a line every ten seconds."""

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

BAR_DELAY = 2.0  # seconds until the bar appears
LINE_INTERVAL = 10.0  # seconds between progress lines


@dataclass
class PredictionProgress:
    """A progress bar, or progress lines if stderr is not a terminal.

    Use: `with closing(PredictionProgress(lambda: 1000, "lines")) as bar: bar.advance(10)`.
    count: returns the total number of sources, or None; called only if progress is shown. unit:
    plural noun for sources. done: number of finished sources, including those of an earlier
    command. quiet: show nothing. printed: whether predictions go to stdout.
    """

    count: Callable[[], int | None]
    unit: str
    done: int = 0
    quiet: bool = False
    printed: bool = True

    def __post_init__(self) -> None:
        self.done_before = self.done
        self.started = self.last_line = time.monotonic()
        self.bar: Bar | None = None
        self.lock = threading.Lock()
        mixed = self.printed and sys.stdout.isatty()  # bar and predictions would share a terminal
        self.live = not self.quiet and sys.stderr.isatty() and not mixed

    def close(self) -> None:
        """Remove the bar."""
        if self.bar:
            self.bar.stop()

    def advance(self, count: int) -> None:
        """Count this many more sources as done. Thread-safe."""
        with self.lock:
            self.done += count
            now = time.monotonic()
            if self.live and now - self.started >= BAR_DELAY:
                self._show_bar()
            elif not self.live and not self.quiet and now - self.last_line >= LINE_INTERVAL:
                self.last_line = now
                info(self.line())

    @cached_property
    def total(self) -> int | None:
        """The total number of sources, or None if unknown. Counted at most once."""
        return self.count()

    def line(self) -> str:
        """Return the number of sources done, the speed and the time left."""
        seconds = max(time.monotonic() - self.started, 1e-6)
        speed = (self.done - self.done_before) / seconds
        total = self.total
        of = f" of {total:,}" if total is not None else ""
        parts = [f"{self.done:,}{of} {self.unit}", f"{speed:,.0f} {self.unit}/s"]
        if total is not None and speed:
            parts.append(f"{duration(max(0, total - self.done) / speed)} left")
        return " | ".join(parts)

    def _show_bar(self) -> None:
        """Show the bar, or update it."""
        if self.bar is None:
            columns = (BarColumn(bar_width=20), TextColumn("{task.description}"))
            self.bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self.task = self.bar.add_task("", total=self.total)
            self.bar.start()
        self.bar.update(self.task, completed=self.done, description=self.line())
