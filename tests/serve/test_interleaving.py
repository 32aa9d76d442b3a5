"""Expensive batches pause for cheap ones, and clients that used much model time wait."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from regard.search.callbacks import SearchCancelled
from regard.serve.accounts import MAX_DEBT, RECOVERY, Accounts
from regard.serve.api_errors import ApiError
from regard.serve.batcher import MAX_DEPTH, Batcher
from regard.serve.job_queue import LOW_COST
from regard.serve.jobs import CallHandler, Job
from regard.serve.metrics import Metrics
from regard.serve.running_batch import CHEAPER, MIN_FRACTION, MIN_SECONDS, RunningBatch
from regard.serve.settings import ServeSettings

STEP = 0.015  # seconds of a step on the clock of the tests


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Steps:
    """A handler whose jobs need a number of steps. It records (name, step) in `order`."""

    def __init__(self, name: str, count: int, clock: Clock, order: list[tuple[str, int]]) -> None:
        self.name, self.count, self.clock, self.order = name, count, clock, order
        self.before_step: Callable[[int], None] = lambda step: None
        self.thread: threading.Thread | None = None

    def run(self, jobs: Sequence[Job], check: Any) -> None:
        self.thread = threading.current_thread()
        try:
            for step in range(self.count):
                self.before_step(step)
                self.clock.now += STEP
                self.order.append((self.name, step))
                check(jobs)
            for job in jobs:
                job.result = self.name
        except SearchCancelled:
            for job in jobs:
                job.result = ApiError(503, "cancelled")


def run_jobs(clock: Clock, put: Callable[[Batcher], list[Job]]) -> list[Any]:
    """Run the jobs that `put` puts into the queue; return their results."""

    async def run() -> list[Any]:
        batcher = Batcher(ServeSettings(batch_wait_ms=0, threads=1), Metrics(), clock)
        async with batcher.running_loop():
            jobs = put(batcher)
            found = await asyncio.gather(*(job.future for job in jobs), return_exceptions=True)
            assert not batcher.running and not batcher.queue
            return found

    return asyncio.run(asyncio.wait_for(run(), 120))


def test_expensive_batches_pause_for_cheap_ones() -> None:
    clock, order = Clock(), list[tuple[str, int]]()
    long, short = Steps("long", 20, clock, order), Steps("short", 2, clock, order)
    equal = Steps("equal", 1, clock, order)

    def put(batcher: Batcher) -> list[Job]:
        jobs = [Job(long, cost=1000), Job(short, cost=1000 // CHEAPER), Job(equal, cost=900)]

        def add_others(step: int) -> None:
            if step == 1:
                asyncio.run_coroutine_threadsafe(add(), loop).result()

        async def add() -> None:
            batcher.put(jobs[1:])

        loop = asyncio.get_running_loop()
        long.before_step = add_others
        batcher.put(jobs[:1])
        return jobs

    assert run_jobs(clock, put) == ["long", "short", "equal"]
    first = next(step for step in range(20) if (step + 1) * STEP >= MIN_SECONDS)
    assert order.index(("short", 0)) == first + 1  # not at once, but long before the end
    assert order[first + 1 : first + 3] == [("short", 0), ("short", 1)]
    assert order[-1] == ("equal", 0)  # not cheap enough
    assert long.thread is not short.thread  # recorders of the paused one do not see it


def test_jobs_without_cost_get_their_result() -> None:
    clock = Clock()

    def put(batcher: Batcher) -> list[Job]:
        jobs = [Job(Steps("free", 1, clock, []), cost=0)]
        batcher.put(jobs)
        return jobs

    assert run_jobs(clock, put) == ["free"]


def test_paused_batches_run_part_of_the_time() -> None:
    """Even if cheaper jobs never end, and without counting the pauses as run time."""
    clock, shorts = Clock(), list[float]()
    batch: RunningBatch

    def run_cheaper(paused: RunningBatch) -> bool:
        assert paused is batch
        clock.now += STEP
        shorts.append(clock.now)
        return True

    new: Any = Future
    jobs = [Job(CallHandler(int), new(), cost=1000)]
    batch = RunningBatch(jobs, 1.0, run_cheaper, clock=clock)
    steps = 0
    while batch.seconds + STEP < 1.0:
        clock.now += STEP
        batch.check(jobs)
        steps += 1
    assert clock.now == pytest.approx(steps * STEP / MIN_FRACTION, rel=0.1)
    assert len(shorts) * STEP == pytest.approx(clock.now - batch.seconds)
    clock.now += 2 * STEP
    with pytest.raises(SearchCancelled):
        batch.check(jobs)


def test_cancelled_batches_end() -> None:
    new: Any = Future
    jobs = [Job(CallHandler(int), new(), cost=1) for _ in range(2)]
    batch = RunningBatch(jobs, 1.0, lambda paused: False, clock=Clock())
    jobs[0].future.cancel()
    batch.check(jobs)
    with pytest.raises(SearchCancelled):
        batch.check(jobs[:1])
    jobs[1].future.cancel()
    with pytest.raises(SearchCancelled):
        batch.check(jobs)


def queued(*jobs: Job) -> Batcher:
    batcher = Batcher(ServeSettings(threads=1), Metrics(), Clock())
    batcher.put(jobs)
    return batcher


def test_batches_pause_only_up_to_a_depth() -> None:
    async def run() -> None:
        costs = [CHEAPER**n for n in range(10, 0, -1)]
        batcher = queued(*(Job(CallHandler(int), cost=cost, arrived=-cost) for cost in costs))
        batch = batcher.start_batch()
        for depth in range(1, MAX_DEPTH + 1):
            assert batch is not None
            batch = batcher.start_batch(batch)
            assert batch is not None and batch.depth == depth
            assert [job.cost for job in batch.jobs] == [costs[depth]]
        assert batcher.start_batch(batch) is None and len(batcher.queue) == 9 - MAX_DEPTH

    asyncio.run(run())


def test_cheap_jobs_do_not_share_a_batch_with_expensive_ones() -> None:
    async def run() -> None:
        handler = CallHandler(int)
        costs = [10, 50 * LOW_COST, LOW_COST, 20 * LOW_COST, 20]
        batcher = queued(*(Job(handler, cost=cost, arrived=0.0) for cost in costs))
        batches = list[list[int]]()
        while batcher.queue:
            batches.append([job.cost for job in batcher.queue.take_batch()])
        assert batches == [[10, 20, LOW_COST], [50 * LOW_COST, 20 * LOW_COST]]

    asyncio.run(run())


def test_clients_that_used_much_model_time_wait() -> None:
    async def run() -> None:
        handlers = [CallHandler(int) for _ in range(4)]
        jobs = [
            Job(handler, cost=100, client=client, arrived=arrived)
            for handler, client, arrived in zip(handlers, "aaba", (0.0, 0.1, 0.2, 9.0), strict=True)
        ]
        batcher = queued(*jobs)
        batcher.accounts.charge("a", 1.0)
        order = [batcher.queue.take_batch()[0] for _ in jobs]
        assert [jobs.index(job) for job in order] == [2, 0, 1, 3]

    asyncio.run(run())


def test_debts() -> None:
    clock = Clock()
    accounts = Accounts(clock)
    assert accounts.debt("a") == 0
    accounts.charge("a", 2.0)
    clock.now = 1.0
    assert accounts.debt("a") == 2.0 - RECOVERY and accounts.debt("b") == 0
    accounts.charge("a", 100.0)
    assert accounts.debt("a") == MAX_DEBT
    clock.now += MAX_DEBT / RECOVERY
    assert accounts.debt("a") == 0
    for n in range(5000):
        accounts.charge(str(n), 0.001)
        clock.now += 1
    assert len(accounts._debts) < 1100  # clients without debt are forgotten
