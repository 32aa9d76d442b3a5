"""A batch that runs. Between its steps, it may pause for cheaper batches."""

import time
from collections.abc import Callable, Sequence

from regard.search.callbacks import SearchCancelled
from regard.serve.jobs import Job

MIN_SECONDS = 0.05  # a batch runs this long before it pauses
MIN_FRACTION = 0.2  # of the time, a batch runs although cheaper ones wait
CHEAPER = 4  # a batch pauses for jobs that cost at most 1/4 of its most expensive job
RETRY_INTERVAL = 0.01  # seconds between two searches of the queue for such jobs


class RunningBatch:
    """A batch with its run time, without pauses.

    timeout: maximum seconds of run time. run_cheaper: runs one batch of queued jobs that cost at
    most this much; returns whether there was one. depth: number of paused batches.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        timeout: float,
        run_cheaper: Callable[["RunningBatch"], bool],
        depth: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.jobs, self.timeout, self.depth = jobs, timeout, depth
        self.max_cost = max(job.cost for job in jobs) // CHEAPER
        self._run_cheaper, self._clock = run_cheaper, clock
        self._started, self._paused, self._next_try = clock(), 0.0, 0.0

    @property
    def seconds(self) -> float:
        """Return the run time so far."""
        return self._clock() - self._started - self._paused

    def check(self, jobs: Sequence[Job]) -> None:
        """Check between two steps for these jobs of the batch, and pause for cheaper batches.

        Raise SearchCancelled after the timeout, or if all clients have stopped waiting.
        """
        if self.seconds > self.timeout or all(job.future.done() for job in jobs):
            raise SearchCancelled
        while self._may_pause() and self._pause():
            pass

    def _may_pause(self) -> bool:
        now = self._clock()
        ran = now - self._started - self._paused
        has_run = ran >= max(MIN_SECONDS, MIN_FRACTION * (now - self._started))
        return has_run and now >= self._next_try

    def _pause(self) -> bool:
        """Run one cheaper batch; return whether there was one."""
        start = self._clock()
        found = self._run_cheaper(self)
        end = self._clock()
        if found:
            self._paused += end - start
        else:
            self._next_try = end + RETRY_INTERVAL
        return found
