"""Batching: concurrent requests share batches, and predictions do not depend on it."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from regard.core.errors import UserError
from regard.estimators import Estimator
from regard.serve.app import build_app
from regard.serve.settings import ServeSettings

from .calls import Calls, ask, wait_for_batch, wait_for_full_batches, wait_for_queue

Served = Callable[..., Any]
BuildApp = Callable[..., FastAPI]


def texts_and_scores(response: httpx.Response) -> list[Any]:
    assert response.status_code == 200, response.text
    return [
        (one["text"], pytest.approx(one["score"], abs=1e-4))
        for one in response.json()["predictions"]
    ]


def test_predictions_do_not_depend_on_the_batch(
    served: Served, build_transducer_app: BuildApp, words: list[str], calls: Calls
) -> None:
    async def one_by_one(client: httpx.AsyncClient) -> list[Any]:
        return [texts_and_scores(await ask(client, word)) for word in words[:64]]

    async def at_once(client: httpx.AsyncClient) -> list[Any]:
        found = await asyncio.gather(*(ask(client, word) for word in words[:64]))
        return [texts_and_scores(one) for one in found]

    alone = served(build_transducer_app(batch_wait_ms=0), one_by_one)
    assert calls.sizes == [1] * 64
    assert served(wait_for_full_batches(build_transducer_app(max_batch_size=64)), at_once) == alone
    assert calls.sizes[64:] == [64]


def test_jobs_queued_while_busy_form_the_next_batch(
    served: Served, build_transducer_app: BuildApp, calls: Calls
) -> None:
    app = build_transducer_app(batch_wait_ms=0, max_batch_size=8)

    async def run_requests(client: httpx.AsyncClient) -> None:
        calls.go.clear()
        first = asyncio.ensure_future(ask(client, "bed"))
        await wait_for_batch(calls)
        others = [asyncio.ensure_future(ask(client, *["fed"] * 3)) for _ in range(3)]
        await wait_for_queue(app, 9)
        wide = asyncio.ensure_future(ask(client, "cab", search={"beam": 6}))
        await wait_for_queue(app, 10)
        calls.go.set()
        await asyncio.gather(first, *others, wide)
        assert calls.sizes == [1, 8, 1, 1]  # at most 8; the other search in its own batch

    served(app, run_requests)


def test_only_the_bad_text_of_a_batch_fails(
    served: Served, build_transducer_app: BuildApp, words: list[str], calls: Calls
) -> None:
    async def run_requests(client: httpx.AsyncClient) -> None:
        good_requests = [ask(client, word, constraints=[{"require": ["a"]}]) for word in words[:15]]
        bad = ask(client, "bed", "fed", constraints=[{}, {"require": ["ж"]}])
        *good, failed = await asyncio.gather(*good_requests, bad)
        assert calls.sizes[0] == 17 and len(calls.sizes) > 1
        assert all(one.status_code == 200 for one in good), [one.text for one in good]
        assert failed.status_code == 400
        assert failed.json()["error"].startswith("texts.1: require: 'ж'")

    served(wait_for_full_batches(build_transducer_app(max_batch_size=17)), run_requests)


def test_samples_do_not_depend_on_other_requests(
    served: Served, estimators: dict[str, Estimator]
) -> None:
    async def run_requests(client: httpx.AsyncClient) -> None:
        body = {"texts": ["Anna ", "Ben "], "nbest": 2, "search": {"temperature": 1.5}}
        alone = (await client.post("/predict", json=body)).json()["predictions"]
        among = await asyncio.gather(*(client.post("/predict", json=body) for _ in range(4)))
        assert [one.json()["predictions"] for one in among] == [alone] * 4
        texts = [other["text"] for one in alone for other in one["nbest"]]
        assert len(set(texts)) == 4  # each row has its own random numbers

    served(
        build_app(
            {"lm": estimators["language-model"]}, ServeSettings(batch_wait_ms=300, max_batch_size=8)
        ),
        run_requests,
    )


def test_invalid_settings() -> None:
    with pytest.raises(ValueError, match="never fit"):
        ServeSettings(max_texts=10, max_queue=5)
    with pytest.raises(UserError, match="no model"):
        build_app({})
