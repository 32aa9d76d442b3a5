"""The one thread that runs models: torch never runs in the event loop."""

import asyncio
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import torch

from regard.core.memory import give_freed_memory_back
from regard.serve.jobs import Job

TIDY = 5.0  # seconds of a busy thread after which freed memory goes back to the system
SWITCH = 0.001  # seconds after which Python's lock changes hands: the loop is never kept waiting


class Runner:
    """Runs the jobs it is given, one batch after the other, in a thread of its own."""

    def __init__(self, seconds: float, threads: int | None = None) -> None:
        """seconds: that a batch may take; threads: of torch."""
        self.seconds = seconds
        self.tidied = time.monotonic()
        self.pool = ThreadPoolExecutor(1, "models", initializer=_begin, initargs=(threads,))

    async def run(self, jobs: Sequence[Job]) -> float:
        """Gives the jobs their outcomes; the seconds that it took."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, self._run, jobs)

    def _run(self, jobs: Sequence[Job]) -> float:
        began = time.monotonic()
        jobs[0].duty.run(jobs, began + self.seconds)
        if time.monotonic() - self.tidied > TIDY:  # else one long text would count for ever
            give_freed_memory_back()
            self.tidied = time.monotonic()
        return time.monotonic() - began

    def close(self) -> None:
        """Lets the thread end after what it is doing."""
        self.pool.shutdown(wait=False, cancel_futures=True)


def _begin(threads: int | None) -> None:
    """Half of the processors for torch: the others serve the event loop and other programs."""
    torch.set_num_threads(threads or max(1, torch.get_num_threads() // 2))
    sys.setswitchinterval(SWITCH)
