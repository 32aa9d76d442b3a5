"""Several runners: batches run at the same time, with the results of one runner."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from regard.estimators import Estimator
from regard.serve import batcher
from regard.serve.batcher import Batcher
from regard.serve.jobs import CallHandler, Job, PredictHandler
from regard.serve.metrics import Metrics
from regard.serve.request_sources import TextSource
from regard.serve.served_models import ServedModel
from regard.serve.settings import ServeSettings
from regard.views.inspection.inspecting import inspect

from .calls import Calls, ask, wait_for_batch, wait_for_queue

Served = Callable[..., Any]
BuildApp = Callable[..., FastAPI]
ROUNDS = 8
TEXTS = {
    "transduce": ["bed", "fade", "a", "cabbage", ""],
    "tag": ["Anna sees Ben .", "the cat", "Ben"],
    "classify": ["good", "a bad film", "fine"],
    "regress": ["1 2", "3 4"],
    "language-model": ["Anna ", "Ben ", "The "],
}


@pytest.fixture
def never_join(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let jobs start on an idle runner at once."""
    monkeypatch.setattr(batcher, "JOIN_SECONDS", 0.0)


@pytest.fixture
def always_join(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let jobs wait until the running batch ends."""
    monkeypatch.setattr(batcher, "JOIN_SECONDS", 1e6)


async def wait_for_sizes(calls: Calls, *sizes: int) -> None:
    """Wait until batches of these sizes have started."""
    while sorted(calls.sizes) != sorted(sizes):
        await asyncio.sleep(0.002)


@pytest.mark.usefixtures("never_join")
def test_two_batches_run_at_the_same_time(
    served: Served, build_transducer_app: BuildApp, calls: Calls
) -> None:
    app = build_transducer_app(batch_wait_ms=0, threads=2)

    async def run_requests(client: httpx.AsyncClient) -> None:
        calls.go.clear()
        first = asyncio.ensure_future(ask(client, "bed"))
        await wait_for_batch(calls)
        second = asyncio.ensure_future(ask(client, "fade", "cab"))
        await wait_for_sizes(calls, 1, 2)  # although the first batch has not ended
        third = asyncio.ensure_future(ask(client, "a", "b", "c"))
        await wait_for_queue(app, 3)  # both runners are busy
        calls.go.set()
        responses = await asyncio.gather(first, second, third)
        assert [one.status_code for one in responses] == [200] * 3
        metrics = (await client.get("/metrics")).text
        assert "regard_batch_size_count 3.0" in metrics and "regard_batch_size_sum 6.0" in metrics

    served(app, run_requests)
    assert sorted(calls.sizes) == [1, 2, 3]


@pytest.mark.usefixtures("always_join")
def test_jobs_wait_for_a_running_batch_to_share_the_next_one(
    served: Served, build_transducer_app: BuildApp, calls: Calls
) -> None:
    app = build_transducer_app(batch_wait_ms=0, threads=2)

    async def run_requests(client: httpx.AsyncClient) -> None:
        calls.go.clear()
        first = asyncio.ensure_future(ask(client, "bed"))
        await wait_for_batch(calls)
        others = [asyncio.ensure_future(ask(client, word)) for word in ("fed", "cab", "fade")]
        await wait_for_queue(app, 3)
        calls.go.set()
        await asyncio.gather(first, *others)
        assert calls.sizes == [1, 3]

    served(app, run_requests)


@pytest.mark.usefixtures("always_join")
def test_a_full_batch_starts_at_once(
    served: Served, build_transducer_app: BuildApp, calls: Calls
) -> None:
    app = build_transducer_app(batch_wait_ms=0, threads=2, max_batch_size=2)

    async def run_requests(client: httpx.AsyncClient) -> None:
        calls.go.clear()
        first = asyncio.ensure_future(ask(client, "bed"))
        await wait_for_batch(calls)
        one = asyncio.ensure_future(ask(client, "fed"))
        await wait_for_queue(app, 1)
        other = asyncio.ensure_future(ask(client, "cab"))
        await wait_for_sizes(calls, 1, 2)
        calls.go.set()
        await asyncio.gather(first, one, other)

    served(app, run_requests)


@pytest.mark.usefixtures("never_join")
def test_cancel_all_with_two_running_batches(
    served: Served, build_transducer_app: BuildApp, calls: Calls
) -> None:
    app = build_transducer_app(batch_wait_ms=0, max_batch_size=1, threads=2)

    async def run_requests(client: httpx.AsyncClient) -> None:
        calls.go.clear()
        requests = [asyncio.ensure_future(ask(client, word)) for word in ("bed", "fade", "cab")]
        await wait_for_sizes(calls, 1, 1)
        await wait_for_queue(app, 1)
        app.state.service.batcher.cancel_all()
        for dropped in await asyncio.gather(*requests):
            assert dropped.status_code == 503 and "shutting down" in dropped.json()["error"]
        calls.go.set()
        assert (await ask(client, "bed")).status_code == 200  # both runners are free again
        assert (await ask(client, "fade")).status_code == 200

    served(app, run_requests)


def test_batches_pause_only_if_no_runner_is_idle() -> None:
    async def run() -> None:
        batcher = Batcher(ServeSettings(threads=2), Metrics())
        costs = (1000, 900, 100, 10)
        batcher.put([Job(CallHandler(int), cost=cost, arrived=-cost) for cost in costs])
        first = batcher.start_batch()
        assert first is not None and batcher.start_batch(first) is None
        second = batcher.start_batch()
        assert second is not None and [job.cost for job in second.jobs] == [900]
        cheap = batcher.start_batch(first)
        assert cheap is not None and [job.cost for job in cheap.jobs] == [100]
        other = batcher.start_batch(second)  # each runner pauses for itself
        assert other is not None and [job.cost for job in other.jobs] == [10]
        assert [batch.depth for batch in batcher.running] == [0, 0, 1, 1]

    asyncio.run(run())


def predict(estimator: Estimator, task: str) -> list[Any]:
    """Return predictions of a batch, computed by the handler of the server."""
    predictor = estimator.predictor_
    handler = PredictHandler(ServedModel(task, predictor), predictor.config.search)
    new: Any = Future
    jobs = [Job(handler, new(), TextSource(text), index=i) for i, text in enumerate(TEXTS[task])]
    handler.run(jobs, lambda jobs: None)
    return [job.result for job in jobs]


def test_predictions_do_not_depend_on_the_runner(estimators: dict[str, Estimator]) -> None:
    """All models run in two threads at once, and one of them inspects and ablates meanwhile."""
    alone = {task: predict(one, task) for task, one in estimators.items()}
    inspected = inspect(estimators["transduce"], "fade").as_dict()
    assert not any(isinstance(one, Exception) for found in alone.values() for one in found)
    barrier = threading.Barrier(2)

    def run(inspects: bool) -> None:
        for _ in range(ROUNDS):
            for task, one in estimators.items():
                barrier.wait(120)
                if inspects and task == "transduce":
                    assert inspect(one, "fade").as_dict() == inspected
                assert predict(one, task) == alone[task]  # bit for bit

    with ThreadPoolExecutor(2, initializer=batcher._start_thread) as pool:
        found = [pool.submit(run, inspects) for inspects in (True, False)]
        try:
            for one in found:
                one.result()
        finally:
            barrier.abort()


def test_each_thread_is_a_runner(torch_threads: Callable[[int], None]) -> None:
    torch_threads(2)
    assert Batcher(ServeSettings(), Metrics()).num_runners == 2
    assert Batcher(ServeSettings(threads=3), Metrics()).num_runners == 3
