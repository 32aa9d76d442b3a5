"""The runners of the models: threads that run queued jobs in batches.

A job is a text to predict, or a single call of a model. Queued jobs with the same handler run as
one batch.
"""

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from regard.core.memory import trim_malloc
from regard.serve.accounts import Accounts
from regard.serve.api_errors import unavailable
from regard.serve.job_queue import JobQueue
from regard.serve.jobs import Job
from regard.serve.metrics import Metrics
from regard.serve.running_batch import RunningBatch
from regard.serve.settings import ServeSettings

JOIN_SECONDS = 0.05  # new jobs wait this long for a running batch to end, to share the next one
MAX_DEPTH = 3  # batches of a runner that are paused at the same time
TRIM_INTERVAL = 5.0  # seconds between two returns of freed memory to the system
SWITCH_INTERVAL = 0.001  # seconds until Python switches threads, so that the event loop never waits


class Batcher:
    """The queue of jobs and the threads that run them: torch never runs in the event loop.

    Each runner runs one batch at a time, in one torch thread. While all runners are idle, a new job
    waits a few milliseconds for more jobs. While a batch runs, jobs queue up, and the next batch
    starts as soon as it ends, because one large batch needs less time than two small ones. If it
    does not end soon, or a full batch is queued, an idle runner starts the next one.

    While all runners are busy, expensive batches pause for cheaper ones. Each of those runs in a
    thread of its own while the paused one waits.
    """

    def __init__(
        self,
        settings: ServeSettings,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings, self.metrics, self.clock = settings, metrics, clock
        self.accounts = Accounts(clock)
        self.queue = JobQueue(settings, self.accounts)
        self.running: list[RunningBatch] = []  # including paused ones
        self.batch_timeout = settings.timeout / 2  # leaves time for the jobs in the queue
        self.num_runners = settings.threads or torch.get_num_threads()
        max_threads = self.num_runners * (1 + MAX_DEPTH)
        self.threads = ThreadPoolExecutor(max_threads, "models", _start_thread)
        self.last_trim = time.monotonic()
        self._lock = threading.Lock()  # of `running`
        self._idle_runners = asyncio.Semaphore(self.num_runners)
        self._not_empty = asyncio.Event()
        self._start_now = asyncio.Event()  # a full batch is queued, or a batch has ended

    @contextlib.asynccontextmanager
    async def running_loop(self) -> AsyncIterator[None]:
        """Run queued jobs inside the block; cancel the remaining jobs at its end."""
        self._loop = asyncio.get_running_loop()
        loop = self._loop.create_task(self._run_loop())
        yield
        self.cancel_all()
        loop.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await loop
        self.threads.shutdown(wait=False, cancel_futures=True)

    def cancel_all(self) -> None:
        """Cancel queued and running jobs; a running search ends at its next step."""
        with self._lock:
            running = [job for batch in self.running for job in batch.jobs]
            jobs = [*self.queue.take_all(), *running]
        for job in jobs:
            if not job.future.done():
                job.future.set_exception(unavailable("the server is shutting down; retry later"))

    def put(self, jobs: Sequence[Job]) -> None:
        """Add jobs to the queue; raise ApiError if the queue has no room for all of them."""
        self.queue.put(jobs)
        self._not_empty.set()
        if len(self.queue) >= self.settings.max_batch_size:
            self._start_now.set()

    async def _run_loop(self) -> None:
        """Start a batch whenever a runner is idle and jobs are queued, until cancelled."""
        while True:
            await self._idle_runners.acquire()
            await self._wait_for_jobs()
            batch = self.start_batch()
            if batch is None:
                self._idle_runners.release()
            else:
                self.threads.submit(self._run_batch, batch)

    async def _wait_for_jobs(self) -> None:
        """Wait for a job, and for more jobs that may share a batch with it."""
        seconds = 0.0
        if not self.queue:
            self._not_empty.clear()
            await self._not_empty.wait()
            seconds = self.settings.batch_wait_ms / 1000
        with self._lock:
            run_times = [batch.seconds for batch in self.running]
        if run_times:
            seconds = max(seconds, JOIN_SECONDS - min(run_times))
        self._start_now.clear()
        if seconds and len(self.queue) < self.settings.max_batch_size:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._start_now.wait(), seconds)

    def start_batch(self, paused: RunningBatch | None = None) -> RunningBatch | None:
        """Remove the next batch from the queue and return it, or None without a suitable job.

        paused: the batch that pauses for the new one, unless a runner is idle; it limits the cost
        of the new jobs.
        """
        depth, max_cost = (0, None) if paused is None else (paused.depth + 1, paused.max_cost)
        with self._lock:
            num_busy = sum(batch.depth == 0 for batch in self.running)
            must_pause = num_busy == self.num_runners and depth <= MAX_DEPTH
            if paused is not None and not must_pause:
                return None
            jobs = self.queue.take_batch(max_cost)
            if not jobs:
                return None
            batch = RunningBatch(jobs, self.batch_timeout, self._run_cheaper, depth, self.clock)
            self.running.append(batch)
        return batch

    def _run_cheaper(self, paused: RunningBatch) -> bool:
        """Run a cheaper batch while another one is paused; return whether there was one.

        A thread of its own: what is recorded or ablated in the paused one applies to its thread.
        """
        batch = self.start_batch(paused)
        if batch is not None:
            self.threads.submit(self._run_batch, batch).result()
        return batch is not None

    def _run_batch(self, batch: RunningBatch) -> None:
        """Run a batch in a model thread; the event loop then passes the results to the clients."""
        try:
            self._run_jobs(batch)
        except Exception as error:  # the loop must survive any error
            for job in batch.jobs:
                job.result = error
        seconds = batch.seconds
        with self._lock:
            self.running.remove(batch)
        with contextlib.suppress(RuntimeError):  # the event loop has ended, and nothing waits
            self._loop.call_soon_threadsafe(self._finish, batch, seconds)

    def _run_jobs(self, batch: RunningBatch) -> None:
        """Run the handler of a batch, which sets the results of its jobs."""
        batch.jobs[0].handler.run(batch.jobs, batch.check)
        if time.monotonic() - self.last_trim > TRIM_INTERVAL:  # frees the memory of long texts
            self.last_trim = time.monotonic()
            trim_malloc()

    def _finish(self, batch: RunningBatch, seconds: float) -> None:
        """Pass the results of a batch to the clients, and charge them for its run time."""
        self._start_now.set()
        if batch.depth == 0:
            self._idle_runners.release()
        self.metrics.count_batch(len(batch.jobs), seconds)
        total = max(1, sum(job.cost for job in batch.jobs))
        for job in batch.jobs:
            if not job.future.done():
                _resolve(job.future, job.result)
            self.accounts.charge(job.client, seconds * job.cost / total)


def _resolve(future: "asyncio.Future[Any]", result: Any) -> None:
    if isinstance(result, StopIteration):  # a future cannot hold a StopIteration
        future.set_exception(RuntimeError(repr(result)))
    elif isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)


def _start_thread() -> None:
    """Initialize a model thread: results must not depend on the thread that computes them."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    sys.setswitchinterval(SWITCH_INTERVAL)
