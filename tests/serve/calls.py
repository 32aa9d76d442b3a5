"""Helpers: recorded and paused calls of a model, and requests."""

import asyncio
import threading
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from regard.inference.predictor import Predictor


class Calls:
    """Records the batch size of each call of `predict`; calls wait until `go` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.go, self.started = threading.Event(), threading.Event()
        self.go.set()
        original = Predictor.predict

        def predict(predictor: Predictor, sources: Any, *rest: Any) -> Any:
            self.sizes.append(len(sources))
            self.started.set()
            assert self.go.wait(120)
            return original(predictor, sources, *rest)

        monkeypatch.setattr(Predictor, "predict", predict)


async def ask(client: httpx.AsyncClient, *texts: str, **rest: Any) -> httpx.Response:
    return await client.post("/predict", json={"texts": texts, **rest}, timeout=60)


async def wait_for_batch(calls: Calls) -> None:
    """Wait until a batch runs."""
    while not calls.started.is_set():
        await asyncio.sleep(0.002)
    calls.started.clear()


async def wait_for_queue(app: FastAPI, count: int) -> None:
    """Wait until the queue has this many texts."""
    while app.state.service.batcher.queue.num_waiting() != count:
        await asyncio.sleep(0.002)


def wait_for_full_batches(app: FastAPI) -> FastAPI:
    """Return the application; its batches wait until they are full, even on a slow machine."""
    batcher = app.state.service.batcher
    batcher.settings = batcher.settings.model_copy(update={"batch_wait_ms": 1_000_000})
    return app


def skip_time(seconds: float) -> None:
    """Advance the clock of the event loop, so that waiting requests time out."""
    loop: Any = asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + seconds
