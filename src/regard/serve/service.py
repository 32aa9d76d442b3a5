"""What all routes share: the models, the queue, the statistics; and how an answer is waited for."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.requests import Request

from regard.core.errors import UserError
from regard.inference.predictor import Predictor
from regard.serve.api_errors import Refused, gone, later
from regard.serve.batcher import Batcher
from regard.serve.jobs import Asking, Errand, Job
from regard.serve.metrics import Metrics
from regard.serve.schemas import ModelRequest
from regard.serve.search_schema import chosen_search
from regard.serve.served_models import Served
from regard.serve.settings import ServeSettings

KNOWN = 1000  # ways to ask that are remembered


class Service:
    """The models, the queue before them, and what is counted."""

    def __init__(
        self, models: Mapping[str, Predictor], settings: ServeSettings, paths: frozenset[str]
    ) -> None:
        if not models:
            raise UserError("no model: at least one is expected")
        self.settings, self.metrics = settings, Metrics(paths)
        self.models = {name: Served(name, one) for name, one in models.items()}
        self.facts = [model.facts(settings) for model in self.models.values()]
        self.batcher = Batcher(settings, self.metrics)
        self.metrics.waiting.set_function(self.batcher.count)
        self._known: dict[Any, Asking] = {}

    def asking(self, body: ModelRequest, able: str, nbest: int = 1, align: bool = False) -> Asking:
        """Return how a request asks its model; the same wants are the same object."""
        given = tuple((name, type(value), value) for name, value in sorted(body.search.items()))
        wants = (body.model, able, nbest, align, given)
        found = self._known.get(wants)
        if found is None:
            found = self._asking(body, able, nbest, align)
            if len(self._known) >= KNOWN:
                self._known.clear()
            self._known[wants] = found
        return found

    def _asking(self, body: ModelRequest, able: str, nbest: int, align: bool) -> Asking:
        """Return it; refuse what the model cannot do, and what is too much."""
        name = next(iter(self.models)) if body.model is None else body.model
        model = self.models.get(name)
        if model is None:
            known = ", ".join(self.models)
            raise Refused(404, f"model: {name[:80]!r} is not here; there are {known}", "model")
        task, abilities = model.task.kind, model.predictor.abilities
        if able not in model.can:
            raise UserError(f"model: {name}, a {task} model, has no {able}")
        if nbest > self.settings.max_nbest:
            raise UserError(
                f"nbest: at most {self.settings.max_nbest} on this server, {nbest} asked for"
            )
        if nbest > 1 and "nbest" not in abilities:
            raise UserError(f"nbest: a {task} model has one answer to a text")
        if align and "alignment" not in abilities:
            raise UserError("align: only transducers look from tokens of answers at a source")
        search = chosen_search(model.predictor, body.search, self.settings)
        return Asking(model, search, nbest, align)

    async def alone(self, request: Request, call: Callable[[Callable[[], None]], Any]) -> Any:
        """Return what the call gives, run in its turn."""
        (found,) = await self.outcomes(request, [Job(Errand(call))])
        return found

    async def outcomes(self, request: Request, jobs: Sequence[Job]) -> list[Any]:
        """Return the results of jobs, unless one fails, the time is over or the client is gone."""
        self.batcher.put(jobs)
        answer: asyncio.Future[Any] = asyncio.gather(*(job.future for job in jobs))
        # What went wrong is looked at, which else is complained of when nobody does.
        answer.add_done_callback(lambda one: one.cancelled() or one.exception())
        # Nothing comes behind the body but that the client is gone.
        left: asyncio.Future[Any] = asyncio.ensure_future(request.receive())
        try:
            done, _ = await asyncio.wait(
                {answer, left}, timeout=self.settings.timeout, return_when=asyncio.FIRST_COMPLETED
            )
            if answer in done:
                return answer.result()
            raise gone() if left in done else self.over()
        finally:
            left.cancel()
            for job in jobs:
                job.future.cancel()

    def over(self) -> Refused:
        """Return that the time of a request is over."""
        return later(f"no answer within {self.settings.timeout:g} s; ask again, or for less")
