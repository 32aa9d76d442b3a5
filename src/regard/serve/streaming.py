"""Answers that grow while one looks on: server-sent events."""

import asyncio
import time
from asyncio import FIRST_COMPLETED
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from regard.core.errors import UserError
from regard.search.callbacks import Begun
from regard.serve.api_errors import DAMAGE, Refused, shortened
from regard.serve.jobs import Job
from regard.serve.served_models import Served
from regard.serve.service import Service, disconnected
from regard.tasks.task import Prediction


class Growth:
    """The output so far, from the runner's thread to the event loop.

    Only the last one is kept, so a client that reads slowly misses some and holds up nobody, and
    only what is sent is made into a text.
    """

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.there = asyncio.Event()
        self.last: Begun | None = None

    def put(self, found: Begun) -> None:
        """From the runner: the output so far."""
        self.last = found
        self.loop.call_soon_threadsafe(self.there.set)

    def take(self) -> Begun | None:
        """What is new, if anything is."""
        self.there.clear()
        found, self.last = self.last, None
        return found


class Events(Response):
    """The events of a job: grow, again and again, then answer or error."""

    media_type = "text/event-stream; charset=utf-8"

    def __init__(self, service: Service, job: Job, model: Served) -> None:
        """Refused where the queue is full."""
        self.growth = Growth()
        job.grow = self.growth.put
        service.batcher.put([job])
        self.service, self.job = service, job
        self.model: Any = model
        self.status_code, self.background = 200, None
        self.init_headers({"x-accel-buffering": "no"})

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        """Without a length, which nobody knows yet."""
        self.body = b""
        super().init_headers(headers)
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends until the end, unless the client goes, or does not read for too long."""
        gone: asyncio.Future[Any] = asyncio.ensure_future(disconnected(receive))
        talk: asyncio.Future[Any] = asyncio.ensure_future(self._talk(send))
        patience = 2 * self.service.settings.seconds
        try:
            await asyncio.wait({gone, talk}, timeout=patience, return_when=FIRST_COMPLETED)
            if talk.done():
                talk.result()
        finally:
            for one in (gone, talk, self.job.future):
                one.cancel()

    async def _talk(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        async for event in self._events():
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _events(self) -> AsyncIterator[bytes]:
        """Ends with the answer, or with what went wrong."""
        try:
            async for found in self._grown():
                scores = found.as_dict(("symbol_scores",))
                yield event("grow", {"text": found.text, "symbols": found.symbols, **scores})
            found = self.job.future.result()
            self.service.metrics.symbols.labels(self.model.name).inc(len(found.symbols))
            took = round(1000 * (time.monotonic() - self.job.arrived), 3)
            about = {"model": self.model.name, "milliseconds": took}
            yield event("answer", {**found.as_dict(), **about})
        except Refused as error:
            yield event("error", {"error": shortened(error.detail)})
        except UserError as error:
            yield event("error", {"error": shortened(str(error))})
        except Exception:
            yield event("error", {"error": DAMAGE})
            raise

    async def _grown(self) -> AsyncIterator[Prediction]:
        """The answer so far, until it is whole."""
        grown: Callable[[Begun], Prediction] | None = None  # tasks that tell nothing have none
        until = time.monotonic() + self.service.settings.seconds
        while not self.job.future.done():
            left = until - time.monotonic()
            if left <= 0:
                raise self.service.over()
            await _either(self.growth.there, self.job.future, left)
            so_far = self.growth.take()
            if so_far is not None:
                grown = grown or self.model.task.growing(self.job.text)
                yield grown(so_far)


async def _either(there: asyncio.Event, future: "asyncio.Future[Any]", seconds: float) -> None:
    """Waits for news, for the end, or until the time is over."""
    news = asyncio.ensure_future(there.wait())
    try:
        await asyncio.wait({news, future}, timeout=seconds, return_when=FIRST_COMPLETED)
    finally:
        news.cancel()


def event(kind: str, value: dict[str, Any]) -> bytes:
    """A server-sent event."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), to_json(value, inf_nan_mode="null"))
