"""The queue in front of the models.

A job is a text to predict, or a single call of a model. Queued jobs with the same handler run as
one batch.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from regard.core.memory import trim_malloc
from regard.serve.api_errors import unavailable
from regard.serve.jobs import Job
from regard.serve.metrics import Metrics
from regard.serve.settings import ServeSettings
from regard.tasks.batches import MAX_TOKENS

DELAY_PER_CHAR = 0.001  # seconds of delay per character of a text and of the texts before it
MAX_DELAY = 5.0  # seconds
TRIM_INTERVAL = 5.0  # seconds between two returns of freed memory to the system
SWITCH_INTERVAL = 0.001  # seconds until Python switches threads, so that the event loop never waits


class Batcher:
    """The queue of jobs and the model thread that runs them: torch never runs in the event loop.

    While the thread is idle, a new job waits a few milliseconds for more jobs. While the thread is
    busy, jobs queue up, and the next batch starts as soon as it is free.
    """

    def __init__(self, settings: ServeSettings, metrics: Metrics) -> None:
        self.settings, self.metrics = settings, metrics
        self.queue: list[Job] = []
        self.running: list[Job] = []
        self.batch_timeout = settings.timeout / 2  # leaves time for the jobs in the queue
        self.thread = ThreadPoolExecutor(1, "models", _start_thread, (settings.threads,))
        self.last_trim = time.monotonic()
        self._not_empty, self._full = asyncio.Event(), asyncio.Event()

    @contextlib.asynccontextmanager
    async def running_loop(self) -> AsyncIterator[None]:
        """Run queued jobs inside the block; cancel the remaining jobs at its end."""
        loop = asyncio.get_running_loop().create_task(self._run_loop())
        yield
        self.cancel_all()
        loop.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await loop
        self.thread.shutdown(wait=False, cancel_futures=True)

    def cancel_all(self) -> None:
        """Cancel queued and running jobs; a running search ends at its next step."""
        for job in (*self.queue, *self.running):
            if not job.future.done():
                job.future.set_exception(unavailable("the server is shutting down; retry later"))
        self.queue = []

    def put(self, jobs: Sequence[Job]) -> None:
        """Add jobs to the queue; raise ApiError if the queue has no room for all of them."""
        if len(self.queue) + len(jobs) > self.settings.max_queue:
            self.queue = [job for job in self.queue if not job.future.done()]
        if len(self.queue) + len(jobs) > self.settings.max_queue:
            raise unavailable(f"queue full ({len(self.queue)} texts); retry later")
        self.queue += jobs
        self._not_empty.set()
        if len(self.queue) >= self.settings.max_batch_size:
            self._full.set()

    def queue_length(self) -> int:
        """Return the number of queued jobs whose clients still wait."""
        return sum(not job.future.done() for job in self.queue)

    async def _run_loop(self) -> None:
        """Run one batch after another until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            if not self.queue:
                self._not_empty.clear()
                self._full.clear()
                await self._not_empty.wait()
                wait = self.settings.batch_wait_ms / 1000  # more requests may arrive
                if wait and not self._full.is_set():
                    with contextlib.suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(self._full.wait(), wait)
            batch = self.running = self._next_batch()
            if not batch:
                continue
            try:
                seconds = await loop.run_in_executor(self.thread, self._run_batch, batch)
                self.metrics.count_batch(len(batch), seconds)
            except Exception as error:  # the loop must survive any error
                for job in batch:
                    job.result = error
            for job in batch:
                if not job.future.done():
                    _resolve(job.future, job.result)
            self.running = []

    def _next_batch(self) -> list[Job]:
        """Remove the next batch from the queue and return it.

        The batch has the job with the highest priority and the next jobs with the same handler, up
        to a number of jobs and a padded length. Long texts, and texts far down a list, have lower
        priority. So a long text, which may time out, rarely shares a batch with short texts.
        """
        queue = sorted(
            (job for job in self.queue if not job.future.done()),
            key=lambda job: (
                job.arrived + min(MAX_DELAY, DELAY_PER_CHAR * (job.chars_ahead + len(job.text)))
            ),
        )
        batch, rest, longest = list[Job](), list[Job](), 1
        for index, job in enumerate(queue):
            if job.handler is not queue[0].handler and job.handler != queue[0].handler:
                rest.append(job)
                continue
            longest = max(longest, len(job.text))
            is_full = (
                len(batch) == self.settings.max_batch_size
                or (len(batch) + 1) * longest > MAX_TOKENS
            )
            if batch and is_full:
                rest += queue[index:]
                break
            batch.append(job)
        self.queue = rest
        return batch

    def _run_batch(self, batch: Sequence[Job]) -> float:
        """Run a batch in the model thread and set the job results; return the elapsed seconds."""
        start = time.monotonic()
        batch[0].handler.run(batch, start + self.batch_timeout)
        if time.monotonic() - self.last_trim > TRIM_INTERVAL:  # frees the memory of long texts
            trim_malloc()
            self.last_trim = time.monotonic()
        return time.monotonic() - start


def _resolve(future: "asyncio.Future[Any]", result: Any) -> None:
    if isinstance(result, StopIteration):  # a future cannot hold a StopIteration
        future.set_exception(RuntimeError(repr(result)))
    elif isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)


def _start_thread(threads: int | None) -> None:
    """Initialize the model thread. threads: number of torch threads (default: half of the cores).

    The other cores remain free for the event loop and other programs.
    """
    torch.set_num_threads(threads or max(1, torch.get_num_threads() // 2))
    sys.setswitchinterval(SWITCH_INTERVAL)
