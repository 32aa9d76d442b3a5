"""Streaming predictions as server-sent events."""

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
from regard.serve.api_errors import INTERNAL_ERROR, ApiError, shorten
from regard.serve.jobs import Job
from regard.serve.served_models import ServedModel
from regard.serve.service import Service


class LatestPartial:
    """The latest partial hypothesis, passed from the model thread to the event loop.

    Older hypotheses are dropped, so a slow client misses some but does not block the search. Only
    hypotheses that are sent are decoded into text.
    """

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.ready = asyncio.Event()
        self.latest: PartialHypothesis | None = None

    def put(self, partial: PartialHypothesis) -> None:
        """Store a partial hypothesis; called in the model thread."""
        self.latest = partial
        self.loop.call_soon_threadsafe(self.ready.set)

    def take(self) -> PartialHypothesis | None:
        """Remove and return the latest partial hypothesis, or None without a new one."""
        self.ready.clear()
        partial, self.latest = self.latest, None
        return partial


class EventStream(StreamingResponse):
    """A stream of the events of a job: any number of `partial`, then `result` or `error`."""

    def __init__(self, service: Service, job: Job, model: ServedModel) -> None:
        """Put the job into the queue; raise ApiError if the queue is full."""
        self.service, self.job, self.model, self.partial = service, job, model, LatestPartial()
        job.on_partial = self.partial.put
        job.future.add_done_callback(lambda future: self.partial.ready.set())
        service.batcher.put([job])
        headers = {"x-accel-buffering": "no"}
        super().__init__(self._events(), headers=headers, media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all events, unless the client disconnects or stops reading."""
        try:
            with contextlib.suppress(asyncio.TimeoutError):
                sending = super().__call__(scope, receive, send)
                await asyncio.wait_for(sending, 2 * self.service.settings.timeout)
        finally:
            self.job.future.cancel()

    async def _events(self) -> AsyncIterator[bytes]:
        """Yield the encoded events."""
        try:
            async for partial in self._partials():
                yield encode_event("partial", partial)
            prediction = self.job.future.result()
            self.service.metrics.tokens.labels(self.model.name).inc(len(prediction.tokens))
            latency = round(1000 * (time.monotonic() - self.job.arrived), 3)
            about = {"model": self.model.name, "latency_ms": latency}
            yield encode_event("result", {**prediction.as_dict(), **about})
        except ApiError as error:
            yield encode_event("error", {"error": shorten(error.detail)})
        except UserError as error:
            yield encode_event("error", {"error": shorten(str(error))})
        except Exception:
            yield encode_event("error", {"error": INTERNAL_ERROR})
            raise

    async def _partials(self) -> AsyncIterator[dict[str, Any]]:
        """Yield partial predictions until the job is done; raise ApiError on a timeout."""
        decode: Any = None  # created on demand: not all tasks have partial predictions
        deadline = time.monotonic() + self.service.settings.timeout
        while not self.job.future.done():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise self.service.timeout_error()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.partial.ready.wait(), remaining)
            if (partial := self.partial.take()) is not None:
                decode = decode or self.model.task.partial_prediction(self.job.parsed)
                prediction = decode(partial)
                scores = prediction.as_dict(("token_logprobs",))
                yield {"text": prediction.text, "tokens": prediction.tokens, **scores}


def encode_event(kind: str, value: dict[str, Any]) -> bytes:
    """Return a server-sent event."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), to_json(value, inf_nan_mode="null"))
