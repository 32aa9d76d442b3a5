"""Answers that grow while one looks on: server-sent events."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

from pydantic_core import to_json
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from regard.core.errors import UserError
from regard.search.callbacks import PartialHypothesis
from regard.serve.api_errors import DAMAGE, Refused, shortened
from regard.serve.jobs import Job
from regard.serve.served_models import Served
from regard.serve.service import Service


class Growth:
    """The output so far, from the thread of the models to the event loop.

    Only the last one is kept, so a client that reads slowly misses some and holds up nobody, and
    only what is sent is made into a text.
    """

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.there = asyncio.Event()
        self.last: PartialHypothesis | None = None

    def put(self, found: PartialHypothesis) -> None:
        """Keep the output so far; called in the thread."""
        self.last = found
        self.loop.call_soon_threadsafe(self.there.set)

    def take(self) -> PartialHypothesis | None:
        """Return what is new, if anything is."""
        self.there.clear()
        found, self.last = self.last, None
        return found


class Events(StreamingResponse):
    """The events of a job: grow, again and again, then answer or error."""

    def __init__(self, service: Service, job: Job, model: Served) -> None:
        """Put the job into the queue, or refuse it if there is no room."""
        self.service, self.job, self.model, self.growth = service, job, model, Growth()
        job.grow = self.growth.put
        job.future.add_done_callback(lambda future: self.growth.there.set())
        service.batcher.put([job])
        headers = {"x-accel-buffering": "no"}
        super().__init__(self._events(), headers=headers, media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the end, unless the client goes, or does not read for too long."""
        try:
            with contextlib.suppress(asyncio.TimeoutError):
                sent = super().__call__(scope, receive, send)
                await asyncio.wait_for(sent, 2 * self.service.settings.timeout)
        finally:
            self.job.future.cancel()

    async def _events(self) -> AsyncIterator[bytes]:
        """End with the answer, or with what went wrong."""
        try:
            async for grown in self._grown():
                yield event("grow", grown)
            found = self.job.future.result()
            self.service.metrics.tokens.labels(self.model.name).inc(len(found.tokens))
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

    async def _grown(self) -> AsyncIterator[dict[str, Any]]:
        """Give the answer so far, until it is whole."""
        grow: Any = None  # made when it is needed: tasks that tell nothing have none
        until = time.monotonic() + self.service.settings.timeout
        while not self.job.future.done():
            left = until - time.monotonic()
            if left <= 0:
                raise self.service.over()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.growth.there.wait(), left)
            if (so_far := self.growth.take()) is not None:
                grow = grow or self.model.task.growing(self.job.text)
                found = grow(so_far)
                scores = found.as_dict(("token_logprobs",))
                yield {"text": found.text, "tokens": found.tokens, **scores}


def event(kind: str, value: dict[str, Any]) -> bytes:
    """Return a server-sent event."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), to_json(value, inf_nan_mode="null"))
