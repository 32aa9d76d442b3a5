"""The queue before the models: what arrives together, or waits together, runs as one batch."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from regard.core.memory import give_freed_memory_back
from regard.serve.api_errors import later
from regard.serve.jobs import Job
from regard.serve.metrics import Metrics
from regard.serve.settings import ServeSettings
from regard.tasks.batches import TOKENS

PATIENCE = 0.001  # seconds that a text stands back for each character of it and of those before it
LONGEST = 5.0  # seconds that it stands back, at most
TIDY = 5.0  # seconds of a busy thread after which freed memory goes back to the system
SWITCH = 0.001  # seconds after which Python's lock changes hands: the loop is never kept waiting


class Batcher:
    """Jobs that wait, and the one thread that runs them: torch never runs in the event loop.

    A job that finds the thread idle waits a few milliseconds for others. While the thread is busy
    jobs pile up, and the next batch starts at once.
    """

    def __init__(self, settings: ServeSettings, metrics: Metrics) -> None:
        self.settings, self.metrics = settings, metrics
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        self.seconds = settings.timeout / 2  # that a batch may take: others still have time
        self.thread = ThreadPoolExecutor(1, "models", _start_thread, (settings.threads,))
        self.tidied = time.monotonic()
        self._there, self._full = asyncio.Event(), asyncio.Event()

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Run what is put, inside the block; at its end refuse what there is."""
        loop = asyncio.get_running_loop().create_task(self._serve())
        yield
        self.drop()
        loop.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await loop
        self.thread.shutdown(wait=False, cancel_futures=True)

    def drop(self) -> None:
        """Refuse what waits and what runs; a search ends at its next step."""
        for job in (*self.waiting, *self.running):
            if not job.future.done():
                job.future.set_exception(later("the server stops; ask again in a moment"))
        self.waiting = []

    def put(self, jobs: Sequence[Job]) -> None:
        """Let jobs wait; refuse them where the queue has no room for all."""
        if len(self.waiting) + len(jobs) > self.settings.max_queue:
            self.waiting = [job for job in self.waiting if not job.future.done()]
        if len(self.waiting) + len(jobs) > self.settings.max_queue:
            raise later(f"the queue is full: {len(self.waiting)} texts wait; ask again in a moment")
        self.waiting += jobs
        self._there.set()
        if len(self.waiting) >= self.settings.max_batch_size:
            self._full.set()

    def count(self) -> int:
        """Return how many wait."""
        return sum(not job.future.done() for job in self.waiting)

    async def _serve(self) -> None:
        """Run one batch after the other, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            if not self.waiting:
                self._there.clear()
                self._full.clear()
                await self._there.wait()
                wait = self.settings.batch_wait_ms / 1000  # more requests may arrive
                if wait and not self._full.is_set():
                    with contextlib.suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(self._full.wait(), wait)
            batch = self.running = self._take()
            if not batch:
                continue
            try:
                seconds = await loop.run_in_executor(self.thread, self._run, batch)
                self.metrics.batch(len(batch), seconds)
            except Exception as error:  # whatever it is, others are still to be served
                for job in batch:
                    job.outcome = error
            for job in batch:
                if not job.future.done():
                    _settle(job.future, job.outcome)
            self.running = []

    def _take(self) -> list[Job]:
        """Return the next batch: whose turn it is, and those with the same duty and not much
        longer.

        So what is long, and may take too long, does not take others with it. Who has the least is
        next: long texts, and those far down a list, let others pass.
        """
        waiting = sorted(
            (job for job in self.waiting if not job.future.done()),
            key=lambda job: job.arrived + min(LONGEST, PATIENCE * (job.ahead + len(job.text))),
        )
        batch, rest, longest = list[Job](), list[Job](), 1
        for place, job in enumerate(waiting):
            if job.duty is not waiting[0].duty and job.duty != waiting[0].duty:
                rest.append(job)
                continue
            longest = max(longest, len(job.text))
            full = len(batch) == self.settings.max_batch_size or (len(batch) + 1) * longest > TOKENS
            if batch and full:
                rest += waiting[place:]
                break
            batch.append(job)
        self.waiting = rest
        return batch

    def _run(self, batch: Sequence[Job]) -> float:
        """Give the jobs their outcomes, in the thread; return the seconds that it took."""
        began = time.monotonic()
        batch[0].duty.run(batch, began + self.seconds)
        if time.monotonic() - self.tidied > TIDY:  # else one long text would count for ever
            give_freed_memory_back()
            self.tidied = time.monotonic()
        return time.monotonic() - began


def _settle(future: "asyncio.Future[Any]", outcome: Any) -> None:
    if isinstance(outcome, StopIteration):  # which no future can hold
        future.set_exception(RuntimeError(repr(outcome)))
    elif isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


def _start_thread(threads: int | None) -> None:
    """Give torch half of the processors: the others serve the event loop and other programs."""
    torch.set_num_threads(threads or max(1, torch.get_num_threads() // 2))
    sys.setswitchinterval(SWITCH)
