"""The queue: limits, timeouts, cancellation, priorities."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from regard.estimators import Estimator
from regard.search.callbacks import SearchCancelled
from regard.serve import job_queue
from regard.serve.api_errors import ApiError
from regard.serve.jobs import CallHandler, Job, PredictHandler
from regard.serve.request_sources import TextSource
from regard.serve.served_models import ServedModel
from regard.tasks.values import Constraints

from .calls import Calls, ask, skip_time, wait_for_batch, wait_for_full_batches, wait_for_queue

Served = Callable[..., Any]
BuildApp = Callable[..., FastAPI]


def test_full_queue_is_503_with_retry_after(
    served: Served, build_transducer_app: BuildApp, calls: Calls
) -> None:
    app = build_transducer_app(batch_wait_ms=0, max_queue=4, max_texts=4, max_batch_size=1)

    async def run_requests(client: httpx.AsyncClient) -> None:
        calls.go.clear()
        first = asyncio.ensure_future(ask(client, "bed"))
        await wait_for_batch(calls)
        others = asyncio.ensure_future(ask(client, "a", "b", "c"))
        await wait_for_queue(app, 3)
        rejected = await ask(client, "d", "e")
        assert rejected.status_code == 503 and int(rejected.headers["retry-after"]) > 0
        assert "queue full (3 texts)" in rejected.json()["error"]
        last = asyncio.ensure_future(ask(client, "d"))  # room for one
        await wait_for_queue(app, 4)
        calls.go.set()
        responses = await asyncio.gather(first, others, last)
        assert [one.status_code for one in responses] == [200] * 3

    served(app, run_requests)


def test_timeout_stops_the_search(served: Served, build_transducer_app: BuildApp) -> None:
    """A long search ends after its timeout, and other requests are served."""
    app = build_transducer_app(batch_wait_ms=0, timeout=120)
    queue = app.state.service.batcher

    async def run_requests(client: httpx.AsyncClient) -> None:
        endless = {"min_length": 2000, "max_length": 2000, "beam": 32}
        enough, queue.batch_timeout = queue.batch_timeout, 0.01
        rejected = await ask(client, "bed", search=endless)
        assert rejected.status_code == 503 and "retry-after" in rejected.headers
        assert "timed out" in rejected.json()["error"]
        queue.batch_timeout = enough
        assert (await ask(client, "bed")).status_code == 200

    served(app, run_requests)


@pytest.mark.parametrize("search", [{"beam": 1}, {"beam": 4}, {"kind": "sample"}])
def test_results_before_the_timeout_are_returned(
    estimators: dict[str, Estimator], search: dict[str, Any]
) -> None:
    """The short text of a batch has a result although the long one times out."""
    model = estimators["transduce"]
    predictor = model.predictor_
    asking = PredictHandler(ServedModel("turn", predictor), predictor.search_options(**search))
    steps = list[int]()

    def check(waiting: Any) -> None:
        """Cancel the batch after the short text has finished."""
        steps.append(1)
        if len(steps) > 40:
            raise SearchCancelled

    (expected,) = model.predict_detailed(["a"], **search)
    new: Any = Future
    short = Job(asking, new(), TextSource("a"), arrived=0.0)
    long = Job(asking, new(), TextSource("a"), Constraints(prefix="fadeb" * 10), arrived=0.0)
    asking.run([short, long], check)
    assert short.result.text == expected.text
    assert isinstance(long.result, ApiError) and "timed out" in str(long.result)


def test_cancelled_jobs_do_not_run(
    served: Served, build_transducer_app: BuildApp, calls: Calls
) -> None:
    app = build_transducer_app(batch_wait_ms=0, timeout=120)

    async def run_requests(client: httpx.AsyncClient) -> None:
        calls.go.clear()
        first = asyncio.ensure_future(ask(client, "bed"))
        await wait_for_batch(calls)
        second = asyncio.ensure_future(ask(client, "fade"))
        await wait_for_queue(app, 1)
        skip_time(121)
        assert (await second).status_code == 503
        assert (await first).status_code == 503  # it waited as long
        calls.go.set()
        assert (await ask(client, "cab")).status_code == 200
        assert calls.sizes == [1, 1]

    served(app, run_requests)


def test_cancel_all(served: Served, build_transducer_app: BuildApp, calls: Calls) -> None:
    app = build_transducer_app(batch_wait_ms=0, max_batch_size=1)

    async def run_requests(client: httpx.AsyncClient) -> None:
        calls.go.clear()
        first = asyncio.ensure_future(ask(client, "bed"))
        await wait_for_batch(calls)
        second = asyncio.ensure_future(ask(client, "fade"))
        await wait_for_queue(app, 1)
        app.state.service.batcher.cancel_all()
        for dropped in (await first, await second):
            assert dropped.status_code == 503 and "shutting down" in dropped.json()["error"]
        calls.go.set()

    served(app, run_requests)
    assert calls.sizes == [1]


def test_cheap_jobs_have_priority_for_a_while(build_transducer_app: BuildApp) -> None:
    async def order() -> list[int]:
        new: Any = asyncio.get_running_loop().create_future
        now = time.monotonic()
        queue = build_transducer_app(max_batch_size=1).state.service.batcher
        those = [
            Job(CallHandler(int), new(), cost=cost, arrived=now - ago)
            for cost, ago in ((90_000, 1.0), (100, 0.5), (90_000, 10.0), (100, 0.0))
        ]
        queue.put(those)
        return [those.index(queue.queue.take_batch()[0]) for _ in those]

    assert asyncio.run(order()) == [2, 1, 3, 0]


@pytest.fixture
def large_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make delays so large that the arrival times do not affect the order."""
    monkeypatch.setattr(job_queue, "DELAY_PER_COST", 1.0)
    monkeypatch.setattr(job_queue, "MAX_DELAY", 1e9)


@pytest.mark.usefixtures("large_delays")
def test_long_lists_have_lower_priority(
    served: Served, build_transducer_app: BuildApp, calls: Calls
) -> None:
    app = build_transducer_app(batch_wait_ms=0, max_batch_size=2)

    async def run_requests(client: httpx.AsyncClient) -> None:
        calls.go.clear()
        first = asyncio.ensure_future(ask(client, "bed"))
        await wait_for_batch(calls)
        many = asyncio.ensure_future(ask(client, *["a" * 900] * 10, search={"max_length": 5}))
        await wait_for_queue(app, 10)
        other = asyncio.ensure_future(ask(client, "a" * 1_500, search={"max_length": 4}))
        await wait_for_queue(app, 11)
        calls.go.set()
        assert [one.status_code for one in await asyncio.gather(first, many, other)] == [200] * 3
        assert calls.sizes == [1, 2, 1, 2, 2, 2, 2]  # after the first two of the ten

    served(app, run_requests)


@pytest.mark.usefixtures("large_delays")
def test_long_texts_run_in_their_own_batch(
    served: Served, build_transducer_app: BuildApp, calls: Calls
) -> None:
    async def run_requests(client: httpx.AsyncClient) -> None:
        texts = [*["bed"] * 5, "a" * 1_700, *["fed"] * 5]
        short = {"max_length": 5}
        await asyncio.gather(*(ask(client, text, search=short) for text in texts))
        assert calls.sizes == [10, 1]

    served(wait_for_full_batches(build_transducer_app(max_batch_size=11)), run_requests)
