"""Calls of a model that are noted and held up, and ways to ask."""

import asyncio
import threading
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from regard.inference.predictor import Predictor


class Calls:
    """Notes how many texts each call of `predict` got; holds calls up until `go` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.go, self.begun = threading.Event(), threading.Event()
        self.go.set()
        original = Predictor.predict

        def predict(predictor: Predictor, sources: Any, *rest: Any) -> Any:
            self.sizes.append(len(sources))
            self.begun.set()
            assert self.go.wait(120)
            return original(predictor, sources, *rest)

        monkeypatch.setattr(Predictor, "predict", predict)


async def ask(client: httpx.AsyncClient, *texts: str, **rest: Any) -> httpx.Response:
    return await client.post("/predict", json={"texts": texts, **rest}, timeout=60)


async def begun(calls: Calls) -> None:
    """Waits until a batch runs."""
    while not calls.begun.is_set():
        await asyncio.sleep(0.002)
    calls.begun.clear()


async def waiting(app: FastAPI, count: int) -> None:
    """Waits until so many texts wait for the runner."""
    while app.state.service.batcher.queue_length() != count:
        await asyncio.sleep(0.002)


def patient(app: FastAPI) -> FastAPI:
    """The application, whose batches wait until they are full, however slow the machine is."""
    batcher = app.state.service.batcher
    batcher.settings = batcher.settings.model_copy(update={"batch_wait_ms": 1_000_000})
    return app


def leap(seconds: float) -> None:
    """Lets the event loop believe that so much time has passed: who waited as long gives up."""
    loop: Any = asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + seconds
