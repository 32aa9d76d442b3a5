"""What all routes share: the models, the queue, the figures; and how an answer is waited for."""

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.types import Receive

from regard.core.errors import UserError
from regard.estimators import Estimator
from regard.serve.api_errors import Refused, gone, later
from regard.serve.batcher import Batcher
from regard.serve.jobs import Asking, Duty, Errand, Job
from regard.serve.metrics import Metrics
from regard.serve.schemas import Asked
from regard.serve.search_schema import chosen_search
from regard.serve.served_models import Served
from regard.serve.settings import ServeSettings

KNOWN = 1000  # ways to ask that are remembered


class Service:
    """The models, the queue before them, and what is counted."""

    def __init__(
        self, models: dict[str, Estimator], settings: ServeSettings, paths: frozenset[str]
    ) -> None:
        if not models:
            raise UserError("no model: at least one is expected")
        self.settings, self.metrics = settings, Metrics(paths)
        self.models = {name: Served(name, estimator) for name, estimator in models.items()}
        self.facts = [model.facts(settings) for model in self.models.values()]
        self.batcher = Batcher(settings, self.metrics)
        self.metrics.waiting.set_function(self.batcher.count)
        self._known: dict[Any, Asking] = {}

    def model(self, asked: Asked, able: str) -> Served:
        """The model that a request means; refuses what it cannot do."""
        name = next(iter(self.models)) if asked.model is None else asked.model
        model = self.models.get(name)
        if model is None:
            known = ", ".join(self.models)
            raise Refused(404, f"model: {name[:80]!r} is not here; there are {known}", "model")
        if able not in model.can:
            raise UserError(f"model: {name}, a {model.estimator.task} model, has no {able}")
        return model

    def asking(self, model: Served, asked: Asked, nbest: int = 1, align: bool = False) -> Asking:
        """Texts for this model as a request wants them; the same wants are the same object."""
        given = tuple((name, type(value), value) for name, value in sorted(asked.search.items()))
        wants = (model.name, nbest, align, given)
        found = self._known.get(wants)
        if found is None:
            if len(self._known) >= KNOWN:
                self._known.clear()
            found = self._known[wants] = self._asking(model, asked, nbest, align)
        return found

    def _asking(self, model: Served, asked: Asked, nbest: int, align: bool) -> Asking:
        if nbest > self.settings.nbest:
            raise UserError(
                f"nbest: at most {self.settings.nbest} on this server, {nbest} asked for"
            )
        if nbest > 1 and "nbest" not in model.task.abilities:
            raise UserError(f"nbest: a {model.estimator.task} model has one answer to a text")
        if align and not model.answering:
            raise UserError("align: only transducers look from symbols of answers at a source")
        search = chosen_search(model.estimator, asked.search, self.settings)
        return Asking(model, search, nbest, align)

    async def alone(self, request: Request, call: Any) -> Any:
        """What the call gives, run by the runner in its turn."""
        (found,) = await self.outcomes(request, [self.job(Errand(call))])
        return found

    def job(self, duty: Duty, **rest: Any) -> Job:
        """A job of this loop."""
        return Job(duty, asyncio.get_running_loop().create_future(), **rest)

    async def outcomes(self, request: Request, jobs: Sequence[Job]) -> list[Any]:
        """The results of jobs, unless one fails, the time is over or the client is gone."""
        self.batcher.put(jobs)
        answer: asyncio.Future[Any] = asyncio.gather(*(job.future for job in jobs))
        answer.add_done_callback(_seen)
        left: asyncio.Future[Any] = asyncio.ensure_future(disconnected(request.receive))
        try:
            done, _ = await asyncio.wait(
                {answer, left}, timeout=self.settings.seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if answer in done:
                return answer.result()
            raise gone() if left in done else self.over()
        finally:
            left.cancel()
            for job in jobs:
                job.future.cancel()

    def over(self) -> Refused:
        """That the time of a request is over."""
        return later(f"no answer within {self.settings.seconds:g} s; ask again, or for less")


def _seen(answer: "asyncio.Future[Any]") -> None:
    """Looks at what went wrong, which else is complained of when nobody does."""
    if not answer.cancelled():
        answer.exception()


async def disconnected(receive: Receive) -> None:
    """Waits until the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
