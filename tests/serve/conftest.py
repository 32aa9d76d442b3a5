"""Fixtures: an application with small models, and clients."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import httpx
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

import regard
from regard.estimators import Estimator
from regard.serve.app import build_app
from regard.serve.settings import ServeSettings

from .calls import Calls

Result = TypeVar("Result")
TASKS = ("tag", "classify", "regress", "language-model")


@pytest.fixture(scope="session")
def estimators(models: Callable[[str], Any], trained: Any) -> dict[str, Estimator]:
    """Return a trained model per task."""
    others = {task: regard.load(models(task).run) for task in TASKS}
    return {"transduce": regard.load(trained.run), **others}


@pytest.fixture(scope="session")
def client(estimators: dict[str, Estimator]) -> Iterator[TestClient]:
    """Return a client of a server with all models; the transducer is the first."""
    with TestClient(build_app(estimators), raise_server_exceptions=False) as one:
        yield one


@pytest.fixture(scope="session")
def served() -> Callable[..., Any]:
    """`served(app, run_requests)` runs `run_requests(client)` in the event loop of the server."""

    def run(app: FastAPI, run_requests: Callable[[httpx.AsyncClient], Awaitable[Result]]) -> Result:
        async def serve() -> Result:
            way = httpx.ASGITransport(app)
            async with (
                app.router.lifespan_context(app),
                httpx.AsyncClient(transport=way, base_url="http://localhost") as client,
            ):
                return await run_requests(client)

        return asyncio.run(serve())

    return run


@pytest.fixture(scope="session")
def build_transducer_app(estimators: dict[str, Estimator]) -> Callable[..., FastAPI]:
    """`build_transducer_app(max_batch_size=4)` returns an application with these settings.

    One batch runs at a time, unless `threads` is set.
    """
    return lambda **settings: build_app(
        {"turn": estimators["transduce"]}, ServeSettings(**{"threads": 1, **settings})
    )


def events(text: str) -> list[tuple[str, Any]]:
    """Return the server-sent events of a response."""
    found = []
    for block in text.strip().split("\n\n"):
        kind, data = block.split("\n")
        found.append((kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


@pytest.fixture(scope="session")
def events_of() -> Callable[[str], list[tuple[str, Any]]]:
    """Parse server-sent events."""
    return events


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Record the calls of a transducer."""
    return Calls(monkeypatch)
