"""Progress of long work: a bar in a terminal, otherwise a line every few seconds."""

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from regard.core.errors import info

LINE_SECONDS = 15.0  # between plain lines


class ProgressBar:
    """A progress bar: `with ProgressBar("tokenizing", 1000) as bar: bar.advance(10)`."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = title, total, 0
        self.shown = time.monotonic()
        self.bar: Bar | None = None
        if sys.stderr.isatty():
            self.bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(bar_width=30),
                TaskProgressColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self.task = self.bar.add_task(title, total=total)

    def __enter__(self) -> "ProgressBar":
        if self.bar:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar:
            self.bar.stop()

    def advance(self, count: int) -> None:
        """Add to the number of finished items."""
        self.done += count
        if self.bar:
            self.bar.update(self.task, advance=count)
        elif time.monotonic() - self.shown >= LINE_SECONDS:
            self.shown = time.monotonic()
            fraction = self.done / max(1, self.total)
            info(f"{self.title}: {self.done:,} of {self.total:,} ({fraction:.0%})")
