"""The queue before the runner: what arrives together, or waits together, runs as one batch."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

from regard.serve.api_errors import later
from regard.serve.jobs import Job
from regard.serve.metrics import Metrics
from regard.serve.runner import Runner
from regard.serve.settings import ServeSettings
from regard.tasks.batches import TOKENS


class Batcher:
    """Jobs that wait, and the loop that hands them to the runner.

    A job that finds the runner idle waits a few milliseconds for others. While the runner is busy
    jobs pile up, and the next batch starts at once.
    """

    def __init__(self, settings: ServeSettings, metrics: Metrics) -> None:
        self.settings, self.metrics = settings, metrics
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        self.runner = Runner(settings.seconds / 2, settings.threads)  # half: others still have time
        self._there, self._full = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to hand out; in the event loop that serves."""
        self._task = asyncio.get_running_loop().create_task(self._serve())

    async def close(self) -> None:
        """Ends, with what there is."""
        self.drop()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self.runner.close()

    def drop(self) -> None:
        """Refuses what waits and what runs; a search ends at its next step."""
        for job in (*self.waiting, *self.running):
            if not job.gone:
                job.future.set_exception(later("the server stops; ask again in a moment"))
        self.waiting = []

    def put(self, jobs: Sequence[Job]) -> None:
        """Lets jobs wait; refuses them where the queue has no room for all."""
        if len(self.waiting) + len(jobs) > self.settings.queue:
            self.waiting = [job for job in self.waiting if not job.gone]
        if len(self.waiting) + len(jobs) > self.settings.queue:
            raise later(f"the queue is full: {len(self.waiting)} texts wait; ask again in a moment")
        self.waiting += jobs
        self._there.set()
        if len(self.waiting) >= self.settings.batch:
            self._full.set()

    def count(self) -> int:
        """How many wait."""
        return sum(not job.gone for job in self.waiting)

    async def _serve(self) -> None:
        """One batch after the other, for ever."""
        while True:
            if not self.waiting:
                self._there.clear()
                await self._there.wait()
                await self._gather()
            batch = self._take()
            if batch:
                await self._run(batch)

    async def _gather(self) -> None:
        """Waits for others to join, unless there are enough already."""
        if len(self.waiting) >= self.settings.batch or not self.settings.wait:
            return
        self._full.clear()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._full.wait(), self.settings.wait / 1000)

    def _take(self) -> list[Job]:
        """The next batch: whose turn it is, and those with the same duty and not much longer.

        So what is long, and may take too long, does not take others with it.
        """
        waiting = sorted((job for job in self.waiting if not job.gone), key=lambda job: job.turn)
        if not waiting:
            self.waiting = []
            return []
        duty = waiting[0].duty
        batch, longest = list[Job](), 1
        for job in waiting:
            if job.duty is not duty and job.duty != duty:
                continue
            longest = max(longest, len(job.text))
            if batch and (len(batch) + 1) * longest > TOKENS:
                break
            batch.append(job)
            if len(batch) == self.settings.batch:
                break
        taken = set(map(id, batch))
        self.waiting = [job for job in waiting if id(job) not in taken]
        return batch

    async def _run(self, batch: list[Job]) -> None:
        """Runs a batch and gives its outcomes to those who wait."""
        self.running = batch
        try:
            self.metrics.batch(len(batch), await self.runner.run(batch))
        except Exception as error:  # whatever it is, others are still to be served
            for job in batch:
                job.outcome = error
        for job in batch:
            if not job.gone:
                _settle(job.future, job.outcome)
        self.running = []


def _settle(future: "asyncio.Future[Any]", outcome: Any) -> None:
    if isinstance(outcome, StopIteration):  # which no future can hold
        future.set_exception(RuntimeError(repr(outcome)))
    elif isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
