"""The order of queued jobs, and which of them share a batch."""

import threading
from collections.abc import Sequence

from regard.serve.accounts import Accounts
from regard.serve.api_errors import unavailable
from regard.serve.jobs import Job
from regard.serve.running_batch import CHEAPER
from regard.serve.settings import ServeSettings
from regard.tasks.batches import MAX_TOKENS

DELAY_PER_COST = 0.0001  # seconds of delay per unit of cost of a job and of those before it
MAX_DELAY = 5.0  # seconds
LOW_COST = 5_000  # jobs up to this cost share a batch, whatever their costs


class JobQueue:
    """The queued jobs. The event loop adds jobs, any thread may take them.

    accounts: jobs of clients that have used much model time wait longer.
    """

    def __init__(self, settings: ServeSettings, accounts: Accounts) -> None:
        self.settings, self.accounts = settings, accounts
        self.jobs: list[Job] = []
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.jobs)

    def num_waiting(self) -> int:
        """Return the number of queued jobs whose clients still wait."""
        return sum(not job.future.done() for job in self.jobs)

    def put(self, jobs: Sequence[Job]) -> None:
        """Add jobs; raise ApiError if the queue has no room for all of them."""
        with self._lock:
            if len(self.jobs) + len(jobs) > self.settings.max_queue:
                self.jobs = [job for job in self.jobs if not job.future.done()]
            if len(self.jobs) + len(jobs) > self.settings.max_queue:
                raise unavailable(f"queue full ({len(self.jobs)} texts); retry later")
            self.jobs += jobs

    def take_all(self) -> list[Job]:
        """Remove and return all jobs."""
        with self._lock:
            jobs, self.jobs = self.jobs, []
        return jobs

    def take_batch(self, max_cost: int | None = None) -> list[Job]:
        """Remove and return the jobs of the next batch; none if no job is cheap enough.

        The batch has the job with the highest priority and the next jobs with the same handler and
        a similar cost, up to a number of jobs, a padded length and a total cost. max_cost: of each
        job (None: any).
        """
        with self._lock:
            if max_cost is not None and all(job.cost > max_cost for job in self.jobs):
                return []
            self.jobs = [job for job in self.jobs if not job.future.done()]
            batch = self._next_batch(max_cost)
            selected = set(map(id, batch))
            self.jobs = [job for job in self.jobs if id(job) not in selected]
        return batch

    def _next_batch(self, max_cost: int | None) -> list[Job]:
        jobs = sorted(
            (job for job in self.jobs if max_cost is None or job.cost <= max_cost),
            key=self._due_time,
        )
        batch, longest, cost = list[Job](), 1, 0
        for job in jobs:
            if not _fit_together(job, jobs[0]):
                continue
            longest, cost = max(longest, len(job.source)), cost + job.cost
            is_full = (
                len(batch) == self.settings.max_batch_size
                or (len(batch) + 1) * longest > MAX_TOKENS
                or cost > self.settings.max_work
            )
            if batch and is_full:
                break
            batch.append(job)
        return batch

    def _due_time(self, job: Job) -> float:
        """Return the time by which jobs are ordered: the arrival, plus a delay.

        Expensive jobs, jobs far down a list, and jobs of clients that have used much model time
        have a longer delay.
        """
        delay = min(MAX_DELAY, DELAY_PER_COST * (job.cost_ahead + job.cost))
        return job.arrived + delay + self.accounts.debt(job.client)


def _fit_together(one: Job, other: Job) -> bool:
    """Return whether two jobs may run in one batch: a cheap one must not wait for the other."""
    is_same = one.handler is other.handler or one.handler == other.handler
    costs = (one.cost, other.cost)
    return is_same and (max(costs) <= LOW_COST or max(costs) <= CHEAPER * min(costs))
