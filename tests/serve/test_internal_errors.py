"""Faults of ours, and work that takes too long: one is notified so, and others are served."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from regard.tasks.transduce import TransduceTask

Served = Callable[..., Any]
BuildApp = Callable[..., FastAPI]


async def ask(client: httpx.AsyncClient, text: str) -> httpx.Response:
    return await client.post("/predict", json={"texts": [text]}, timeout=60)


@pytest.mark.parametrize("fault", [ZeroDivisionError, StopIteration])
def test_internal_error_is_500_for_one_request(
    served: Served,
    build_transducer_app: BuildApp,
    monkeypatch: pytest.MonkeyPatch,
    fault: type[Exception],
) -> None:
    original = TransduceTask.parse

    def parse(task: TransduceTask, text: str) -> Any:
        if text == "boom":
            raise fault
        return original(task, text)

    monkeypatch.setattr(TransduceTask, "parse", parse)

    async def run_requests(client: httpx.AsyncClient) -> None:
        client._transport.raise_app_exceptions = False  # type: ignore[attr-defined]
        good, bad = await asyncio.gather(ask(client, "bed"), ask(client, "boom"))
        assert (good.status_code, bad.status_code) == (200, 500)
        assert "internal error" in bad.json()["error"]
        assert bad.headers["x-content-type-options"] == "nosniff"
        assert (await ask(client, "bed")).status_code == 200

    served(build_transducer_app(batch_wait_ms=200, max_batch_size=2), run_requests)


def test_queue_continues_after_a_failed_batch(
    served: Served, build_transducer_app: BuildApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    from regard.serve.batcher import Batcher
    from regard.serve.request_sources import TextSource

    original = Batcher._run_jobs

    def run(batcher: Batcher, batch: Any) -> None:
        if batch.jobs[0].source == TextSource("boom"):
            raise ZeroDivisionError
        original(batcher, batch)

    monkeypatch.setattr(Batcher, "_run_jobs", run)

    async def run_requests(client: httpx.AsyncClient) -> None:
        client._transport.raise_app_exceptions = False  # type: ignore[attr-defined]
        assert (await ask(client, "boom")).status_code == 500
        assert (await ask(client, "bed")).status_code == 200

    served(build_transducer_app(batch_wait_ms=0, timeout=120), run_requests)


def test_inspect_stops_at_the_timeout(
    served: Served, build_transducer_app: BuildApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the search follow many forward passes: ablated heads, gradients."""
    from regard.views.inspection import internals

    passes, original = list[int](), internals.capture

    def capture(model: Any) -> Any:
        passes.append(1)
        return original(model)

    def clock() -> float:
        """Jump by an hour at the fifth pass."""
        return time.monotonic() + (3600 if len(passes) > 4 else 0)

    monkeypatch.setattr(internals, "capture", capture)
    monkeypatch.setattr(
        "regard.tasks.inspection.forced_pass.MAX_ATTENTION_VALUES", 1
    )  # one pass per token

    async def run_requests(client: httpx.AsyncClient) -> None:
        rejected = await client.post("/inspect", json={"text": "fade", "target": "bed" * 8})
        assert rejected.status_code == 503 and "timed out" in rejected.json()["error"]
        assert len(passes) == 5
        passes.clear()
        assert (await ask(client, "bed")).status_code == 200

    app = build_transducer_app(batch_wait_ms=0, timeout=120)
    app.state.service.batcher.clock = clock
    served(app, run_requests)
