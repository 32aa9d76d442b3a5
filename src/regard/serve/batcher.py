"""The queue in front of the models.

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
from regard.serve.jobs import Job
from regard.serve.metrics import Metrics
from regard.serve.running_batch import CHEAPER, RunningBatch
from regard.serve.settings import ServeSettings
from regard.tasks.batches import MAX_TOKENS

DELAY_PER_COST = 0.0001  # seconds of delay per unit of cost of a job and of those before it
MAX_DELAY = 5.0  # seconds
LOW_COST = 5_000  # jobs up to this cost share a batch, whatever their costs
MAX_DEPTH = 3  # batches that are paused at the same time
TRIM_INTERVAL = 5.0  # seconds between two returns of freed memory to the system
SWITCH_INTERVAL = 0.001  # seconds until Python switches threads, so that the event loop never waits


class Batcher:
    """The queue of jobs and the threads that run them: torch never runs in the event loop.

    While the models are idle, a new job waits a few milliseconds for more jobs. While a batch runs,
    jobs queue up, and the next batch starts as soon as it ends. Only an expensive batch pauses for
    cheaper ones. Each of those runs in a thread of its own while the paused one waits.
    """

    def __init__(
        self,
        settings: ServeSettings,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings, self.metrics, self.clock = settings, metrics, clock
        self.accounts = Accounts(clock)
        self.queue: list[Job] = []
        self.running: list[RunningBatch] = []  # all are paused except the last
        self.batch_timeout = settings.timeout / 2  # leaves time for the jobs in the queue
        # The other half of the cores remains free for the event loop and other programs.
        num_threads = settings.threads or max(1, torch.get_num_threads() // 2)
        self.threads = ThreadPoolExecutor(1 + MAX_DEPTH, "models", _start_thread, (num_threads,))
        self.last_trim = time.monotonic()
        self._lock = threading.Lock()  # of `queue` and `running`
        self._not_empty, self._full = asyncio.Event(), asyncio.Event()

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
            jobs = [*self.queue, *(job for batch in self.running for job in batch.jobs)]
            self.queue = []
        for job in jobs:
            if not job.future.done():
                job.future.set_exception(unavailable("the server is shutting down; retry later"))

    def put(self, jobs: Sequence[Job]) -> None:
        """Add jobs to the queue; raise ApiError if the queue has no room for all of them."""
        with self._lock:
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
        while True:
            if not self.queue:
                self._not_empty.clear()
                self._full.clear()
                await self._not_empty.wait()
                wait = self.settings.batch_wait_ms / 1000  # more requests may arrive
                if wait and not self._full.is_set():
                    with contextlib.suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(self._full.wait(), wait)
            batch = self.start_batch()
            if batch is not None:
                await self._loop.run_in_executor(self.threads, self._run_batch, batch)

    def start_batch(self, paused: RunningBatch | None = None) -> RunningBatch | None:
        """Remove the next batch from the queue and return it, or None without a suitable job.

        paused: the batch that pauses for the new one; it limits the cost of the new jobs.
        """
        depth, max_cost = (0, None) if paused is None else (paused.depth + 1, paused.max_cost)
        with self._lock:
            if depth > MAX_DEPTH or not self._has_job(max_cost):
                return None
            jobs = self._next_batch(max_cost)
            if not jobs:
                return None
            batch = RunningBatch(jobs, self.batch_timeout, self._run_cheaper, depth, self.clock)
            self.running.append(batch)
        return batch

    def _has_job(self, max_cost: int | None) -> bool:
        return any(max_cost is None or job.cost <= max_cost for job in self.queue)

    def _next_batch(self, max_cost: int | None = None) -> list[Job]:
        """Remove the jobs of the next batch from the queue and return them.

        The batch has the job with the highest priority and the next jobs with the same handler and
        a similar cost, up to a number of jobs, a padded length and a total cost. max_cost: of each
        job (None: any).
        """
        self.queue = [job for job in self.queue if not job.future.done()]
        queue = sorted(
            (job for job in self.queue if max_cost is None or job.cost <= max_cost),
            key=self._due_time,
        )
        batch, longest, cost = list[Job](), 1, 0
        for job in queue:
            if not _fit_together(job, queue[0]):
                continue
            longest, cost = max(longest, len(job.text)), cost + job.cost
            is_full = (
                len(batch) == self.settings.max_batch_size
                or (len(batch) + 1) * longest > MAX_TOKENS
                or cost > self.settings.max_work
            )
            if batch and is_full:
                break
            batch.append(job)
        selected = set(map(id, batch))
        self.queue = [job for job in self.queue if id(job) not in selected]
        return batch

    def _due_time(self, job: Job) -> float:
        """Return the time by which jobs are ordered: the arrival, plus a delay.

        Expensive jobs, jobs far down a list, and jobs of clients that have used much model time
        have a longer delay.
        """
        delay = min(MAX_DELAY, DELAY_PER_COST * (job.cost_ahead + job.cost))
        return job.arrived + delay + self.accounts.debt(job.client)

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
            trim_malloc()
            self.last_trim = time.monotonic()

    def _finish(self, batch: RunningBatch, seconds: float) -> None:
        """Pass the results of a batch to the clients, and charge them for its run time."""
        self.metrics.count_batch(len(batch.jobs), seconds)
        total = max(1, sum(job.cost for job in batch.jobs))
        for job in batch.jobs:
            if not job.future.done():
                _resolve(job.future, job.result)
            self.accounts.charge(job.client, seconds * job.cost / total)


def _fit_together(one: Job, other: Job) -> bool:
    """Return whether two jobs may run in one batch: a cheap one must not wait for the other."""
    is_same = one.handler is other.handler or one.handler == other.handler
    costs = (one.cost, other.cost)
    return is_same and (max(costs) <= LOW_COST or max(costs) <= CHEAPER * min(costs))


def _resolve(future: "asyncio.Future[Any]", result: Any) -> None:
    if isinstance(result, StopIteration):  # a future cannot hold a StopIteration
        future.set_exception(RuntimeError(repr(result)))
    elif isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)


def _start_thread(num_threads: int) -> None:
    """Initialize a model thread. num_threads: number of torch threads."""
    torch.set_num_threads(num_threads)
    sys.setswitchinterval(SWITCH_INTERVAL)
