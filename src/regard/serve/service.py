"""State shared by all routes: the models, the queue, the metrics."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.requests import Request

from regard.core.errors import UserError
from regard.inference.predictor import Predictor
from regard.serve.api_errors import ApiError, client_closed, unavailable
from regard.serve.batcher import Batcher
from regard.serve.jobs import CallHandler, Job, PredictHandler
from regard.serve.metrics import Metrics
from regard.serve.schemas import ModelRequest
from regard.serve.search_schema import resolve_search
from regard.serve.served_models import ServedModel
from regard.serve.settings import ServeSettings

MAX_HANDLERS = 1000  # maximum number of cached handlers


class Service:
    """The models with their queue and metrics."""

    def __init__(
        self, models: Mapping[str, Predictor], settings: ServeSettings, paths: frozenset[str]
    ) -> None:
        if not models:
            raise UserError("no model: expected at least one")
        self.settings, self.metrics = settings, Metrics(paths)
        self.models = {name: ServedModel(name, one) for name, one in models.items()}
        self.model_info = [model.info(settings) for model in self.models.values()]
        self.batcher = Batcher(settings, self.metrics)
        self.metrics.queue_length.set_function(self.batcher.queue.num_waiting)
        self._handlers: dict[Any, PredictHandler] = {}

    def predict_handler(
        self, body: ModelRequest, capability: str, nbest: int = 1, return_alignment: bool = False
    ) -> PredictHandler:
        """Return the handler of a request. Requests with equal settings share a cached handler.

        capability: the route, which the model must support.
        """
        search = tuple((name, type(value), value) for name, value in sorted(body.search.items()))
        key = (body.model, capability, nbest, return_alignment, search)
        handler = self._handlers.get(key)
        if handler is None:
            handler = self._build_handler(body, capability, nbest, return_alignment)
            if len(self._handlers) >= MAX_HANDLERS:
                self._handlers.clear()
            self._handlers[key] = handler
        return handler

    def _build_handler(
        self, body: ModelRequest, capability: str, nbest: int, return_alignment: bool
    ) -> PredictHandler:
        """Return a new handler.

        Raise an error if the model does not support the request, or the request exceeds a limit.
        """
        name = next(iter(self.models)) if body.model is None else body.model
        model = self.models.get(name)
        if model is None:
            known = ", ".join(self.models)
            raise ApiError(404, f"model: unknown model {name[:80]!r}; available: {known}", "model")
        task, abilities = model.task.kind, model.predictor.abilities
        if capability not in model.capabilities:
            raise UserError(f"model: {name} (task {task}) does not support {capability}")
        if nbest > self.settings.max_nbest:
            raise UserError(
                f"nbest: expected at most {self.settings.max_nbest} on this server, found {nbest}"
            )
        if nbest > 1 and "nbest" not in abilities:
            raise UserError(f"nbest: not supported for task {task}")
        if return_alignment and "alignment" not in abilities:
            raise UserError("return_alignment: only supported for task transduce")
        search = resolve_search(model.predictor, body.search, self.settings)
        return PredictHandler(model, search, nbest, return_alignment)

    async def run_single(
        self, request: Request, call: Callable[[Callable[[], None]], Any], cost: int
    ) -> Any:
        """Return the result of a call, which runs as a batch of its own (see CallHandler)."""
        job = Job(CallHandler(call), cost=cost, client=client_address(request))
        (result,) = await self.wait_for(request, [job])
        return result

    async def wait_for(self, request: Request, jobs: Sequence[Job]) -> list[Any]:
        """Queue jobs, wait for them and return their results.

        Raise an error if a job fails, the request times out or the client disconnects.
        """
        self.batcher.put(jobs)
        results: asyncio.Future[Any] = asyncio.gather(*(job.future for job in jobs))
        # Retrieve the exception; otherwise asyncio logs it as never retrieved.
        results.add_done_callback(lambda one: one.cancelled() or one.exception())
        # After the body, the only message is the disconnect.
        disconnect: asyncio.Future[Any] = asyncio.ensure_future(request.receive())
        try:
            done, _ = await asyncio.wait(
                {results, disconnect},
                timeout=self.settings.timeout,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if results in done:
                return results.result()
            raise client_closed() if disconnect in done else self.timeout_error()
        finally:
            disconnect.cancel()
            for job in jobs:
                job.future.cancel()

    def timeout_error(self) -> ApiError:
        """Return the error of a request that exceeds the timeout."""
        return unavailable(
            f"request timed out after {self.settings.timeout:g} s; retry later or send less"
        )


def client_address(request: Request) -> str:
    """Return the address of the client, by which clients are told apart."""
    return request.client.host if request.client else ""
