"""Answers that grow while one looks on: server-sent events."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from pydantic_core import to_json
from starlette.responses import StreamingResponse

from regard.errors import UserError
from regard.serve.errors import DAMAGE, Refused
from regard.serve.jobs import Job
from regard.serve.rendering import rendered
from regard.serve.service import Service
from regard.tasks.base import Prediction


class Growth:
    """The answer so far, from the runner's thread to the event loop.

    Only the last one is kept, so a client that reads slowly misses some and holds up nobody.
    """

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.there = asyncio.Event()
        self.last: Prediction | None = None

    def put(self, found: Prediction) -> None:
        """From the runner: the answer so far."""
        self.last = found
        self.loop.call_soon_threadsafe(self.there.set)

    def take(self) -> Prediction | None:
        """What is new, if anything is."""
        self.there.clear()
        found, self.last = self.last, None
        return found


def stream(service: Service, job: Job, name: str) -> StreamingResponse:
    """The events of a job: grow, again and again, then answer or error."""
    growth = Growth()
    job.grow = growth.put
    service.batcher.put([job])
    return StreamingResponse(
        _events(service, job, growth, name),
        media_type="text/event-stream; charset=utf-8",
        headers={"x-accel-buffering": "no"},
    )


async def _events(service: Service, job: Job, growth: Growth, name: str) -> AsyncIterator[bytes]:
    """Ends with the answer, or with what went wrong. A client that is gone cancels this."""
    until = time.monotonic() + service.settings.seconds
    try:
        while not job.future.done():
            left = until - time.monotonic()
            if left <= 0:
                raise service.over()
            await _either(growth.there, job.future, left)
            found = growth.take()
            if found is not None:
                yield event("grow", {"text": found.text, "symbols": found.symbols})
        found = job.future.result()
        service.metrics.symbols[name] += len(found.symbols)
        took = round(1000 * (time.monotonic() - job.arrived), 3)
        yield event("answer", {**rendered(found), "model": name, "milliseconds": took})
    except (Refused, UserError) as error:
        yield event("error", {"error": str(error)})
    except Exception:
        yield event("error", {"error": DAMAGE})
        raise
    finally:
        job.future.cancel()


async def _either(there: asyncio.Event, future: "asyncio.Future[Any]", seconds: float) -> None:
    """Waits for news, for the end, or until the time is over."""
    news = asyncio.ensure_future(there.wait())
    try:
        await asyncio.wait({news, future}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        news.cancel()


def event(kind: str, value: dict[str, Any]) -> bytes:
    """A server-sent event."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), to_json(value, inf_nan_mode="null"))
