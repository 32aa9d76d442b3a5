"""How far long work on data is: a bar in a terminal, a line now and then elsewhere."""

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from regard.core.errors import info

EVERY = 15.0  # seconds between plain lines


class ProgressBar:
    """`with Progress("tokenizing", 1000) as bar: bar.advance(10)`."""

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
        """So much more is done."""
        self.done += count
        if self.bar:
            self.bar.update(self.task, advance=count)
        elif time.monotonic() - self.shown >= EVERY:
            self.shown = time.monotonic()
            share = self.done / max(1, self.total)
            info(f"{self.title}: {self.done:,} of {self.total:,} ({share:.0%})")
