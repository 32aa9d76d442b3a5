"""Who waits, who leaves, whose turn it is, and when it is over."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from regard.estimators import Estimator
from regard.serve import batcher, jobs
from regard.serve.api_errors import ApiError
from regard.serve.jobs import CallHandler, Job, PredictHandler
from regard.serve.served_models import ServedModel
from regard.tasks.values import Constraints

from .calls import Calls, ask, begun, leap, patient, waiting

Served = Callable[..., Any]
Turner = Callable[..., FastAPI]


def test_a_full_queue_is_a_503_that_says_when_to_ask_again(
    served: Served, turner: Turner, calls: Calls
) -> None:
    app = turner(batch_wait_ms=0, max_queue=4, max_texts=4, max_batch_size=1)

    async def talk(client: httpx.AsyncClient) -> None:
        calls.go.clear()
        first = asyncio.ensure_future(ask(client, "bed"))
        await begun(calls)
        others = asyncio.ensure_future(ask(client, "a", "b", "c"))
        await waiting(app, 3)
        refused = await ask(client, "d", "e")
        assert refused.status_code == 503 and int(refused.headers["retry-after"]) > 0
        assert "queue full (3 texts)" in refused.json()["error"]
        last = asyncio.ensure_future(ask(client, "d"))  # room for one
        await waiting(app, 4)
        calls.go.set()
        answers = await asyncio.gather(first, others, last)
        assert [one.status_code for one in answers] == [200] * 3

    served(app, talk)


def test_time_that_is_over_stops_the_search(served: Served, turner: Turner) -> None:
    """An endless answer: the search ends soon after its time, and others are answered."""
    app = turner(batch_wait_ms=0, timeout=120)
    queue = app.state.service.batcher

    async def talk(client: httpx.AsyncClient) -> None:
        endless = {"min_length": 2000, "max_length": 2000, "beam": 32}
        enough, queue.batch_timeout = queue.batch_timeout, 0.01
        refused = await ask(client, "bed", search=endless)
        assert refused.status_code == 503 and "retry-after" in refused.headers
        assert "timed out" in refused.json()["error"]
        queue.batch_timeout = enough
        assert (await ask(client, "bed")).status_code == 200

    served(app, talk)


@pytest.mark.parametrize("search", [{"beam": 1}, {"beam": 4}, {"kind": "sample"}])
def test_what_was_answered_before_the_time_was_over_is_given(
    estimators: dict[str, Estimator], monkeypatch: pytest.MonkeyPatch, search: dict[str, Any]
) -> None:
    """The short one of a batch has its answer when the long one takes too long."""
    model = estimators["transduce"]
    predictor = model.predictor_
    asking = PredictHandler(ServedModel("turn", predictor), predictor.search_options(**search))
    steps = list[int]()

    class Clock:
        """An hour passes when the short one has long come to its limit."""

        @staticmethod
        def monotonic() -> float:
            steps.append(1)
            return 3600.0 if len(steps) > 40 else 0.0

    (expected,) = model.predict_detailed(["a"], **search)
    monkeypatch.setattr(jobs, "time", Clock)
    new: Any = Future
    short = Job(asking, new(), "a", arrived=0.0)
    long = Job(asking, new(), "a", Constraints(prefix="fadeb" * 10), arrived=0.0)
    asking.run([short, long], 60.0)
    assert short.result.text == expected.text
    assert isinstance(long.result, ApiError) and "timed out" in str(long.result)


def test_who_leaves_the_queue_is_not_run(served: Served, turner: Turner, calls: Calls) -> None:
    app = turner(batch_wait_ms=0, timeout=120)

    async def talk(client: httpx.AsyncClient) -> None:
        calls.go.clear()
        first = asyncio.ensure_future(ask(client, "bed"))
        await begun(calls)
        second = asyncio.ensure_future(ask(client, "fade"))
        await waiting(app, 1)
        leap(121)
        assert (await second).status_code == 503
        assert (await first).status_code == 503  # it waited as long
        calls.go.set()
        assert (await ask(client, "cab")).status_code == 200
        assert calls.sizes == [1, 1]

    served(app, talk)


def test_all_can_be_dropped(served: Served, turner: Turner, calls: Calls) -> None:
    app = turner(batch_wait_ms=0, max_batch_size=1)

    async def talk(client: httpx.AsyncClient) -> None:
        calls.go.clear()
        first = asyncio.ensure_future(ask(client, "bed"))
        await begun(calls)
        second = asyncio.ensure_future(ask(client, "fade"))
        await waiting(app, 1)
        app.state.service.batcher.cancel_all()
        for dropped in (await first, await second):
            assert dropped.status_code == 503 and "shutting down" in dropped.json()["error"]
        calls.go.set()

    served(app, talk)
    assert calls.sizes == [1]


def test_short_texts_pass_long_ones_but_not_for_ever(turner: Turner) -> None:
    async def order() -> list[int]:
        new: Any = asyncio.get_running_loop().create_future
        now = time.monotonic()
        queue = turner(max_batch_size=1).state.service.batcher
        those = [
            Job(CallHandler(int), new(), "x" * length, arrived=now - ago)
            for length, ago in ((9000, 1.0), (10, 0.5), (9000, 10.0), (10, 0.0))
        ]
        queue.put(those)
        return [those.index(queue._next_batch()[0]) for _ in those]

    assert asyncio.run(order()) == [2, 1, 3, 0]


@pytest.fixture
def ample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns so far apart that the pace at which requests arrive does not change their order."""
    monkeypatch.setattr(batcher, "DELAY_PER_CHAR", 1.0)
    monkeypatch.setattr(batcher, "MAX_DELAY", 1e9)


@pytest.mark.usefixtures("ample")
def test_a_long_list_lets_others_pass(served: Served, turner: Turner, calls: Calls) -> None:
    app = turner(batch_wait_ms=0, max_batch_size=2)

    async def talk(client: httpx.AsyncClient) -> None:
        calls.go.clear()
        first = asyncio.ensure_future(ask(client, "bed"))
        await begun(calls)
        many = asyncio.ensure_future(ask(client, *["a" * 900] * 10, search={"max_length": 5}))
        await waiting(app, 10)
        other = asyncio.ensure_future(ask(client, "a" * 1_500, search={"max_length": 4}))
        await waiting(app, 11)
        calls.go.set()
        assert [one.status_code for one in await asyncio.gather(first, many, other)] == [200] * 3
        assert calls.sizes == [1, 2, 1, 2, 2, 2, 2]  # after the first two of the ten

    served(app, talk)


@pytest.mark.usefixtures("ample")
def test_long_texts_are_not_taken_along(served: Served, turner: Turner, calls: Calls) -> None:
    async def talk(client: httpx.AsyncClient) -> None:
        texts = [*["bed"] * 5, "a" * 1_700, *["fed"] * 5]
        short = {"max_length": 5}
        await asyncio.gather(*(ask(client, text, search=short) for text in texts))
        assert calls.sizes == [10, 1]

    served(patient(turner(max_batch_size=11)), talk)
