"""The routes that ask a model."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from regard.core.errors import UserError
from regard.serve.api_errors import Refused, as_json
from regard.serve.jobs import Asking, Job
from regard.serve.schemas import AlternativesBody, InspectBody, PredictBody, StreamBody, WishBody
from regard.serve.served_models import Served
from regard.serve.service import Service
from regard.serve.settings import ServeSettings
from regard.serve.streaming import Events
from regard.tasks.questions.question import TooLong
from regard.tasks.values import NBEST_PARTS, PARTS
from regard.tasks.values import Request as Wish

NUMBERS = 5_000_000  # of the alignments of a request; each takes some 10 bytes, and 60 of memory


async def predict(request: Request, body: PredictBody) -> Response:
    """Answer texts."""
    began = time.monotonic()
    service: Service = request.app.state.service
    model = service.model(body, "predict")
    asking = service.asking(model, body, body.nbest, body.align)
    wishes = _wishes(body, model)
    if body.align:
        _check_alignments(body.texts, model, asking.search)
    found = await service.outcomes(request, _jobs(service, asking, body.texts, wishes))
    service.metrics.symbols.labels(model.name).inc(sum(len(one.symbols) for one in found))
    parts = NBEST_PARTS if body.nbest > 1 else PARTS
    answers = [one.as_dict(parts) for one in found]
    took = round(1000 * (time.monotonic() - began), 3)
    return as_json({"model": model.name, "answers": answers, "milliseconds": took})


async def stream_answer(request: Request, body: StreamBody) -> Response:
    """Answer a text while one looks on: server-sent events."""
    service: Service = request.app.state.service
    model = service.model(body, "stream")
    wish = None
    if body.request is not None:
        wish = _wish(body.request, "request", model)
    asking = service.asking(model, body)
    return Events(service, service.job(asking, text=body.text, request=wish), model)


async def inspect(request: Request, body: InspectBody) -> Response:
    """Look into a model while it answers a text."""
    service: Service = request.app.state.service
    model = service.model(body, "inspect")
    service.asking(model, body)  # refuses a search that is too much
    found = await service.alone(
        request, lambda stop: _inspected(model, body, service.settings, stop)
    )
    return Response(found, media_type="application/json")


async def alternatives(request: Request, body: AlternativesBody) -> Response:
    """Say how an answer may go on behind a beginning."""
    service: Service = request.app.state.service
    model = service.model(body, "alternatives")
    wish = _wish(body.request, "request", model) or Wish()
    search, call = service.asking(model, body).search, model.predictor.alternatives
    found = await service.alone(
        request, lambda stop: call(body.text, wish, body.count, search, lambda *step: stop())
    )
    ways = [{"symbol": s, "p": round(p, 6), "answer": a.as_dict()} for s, p, a in found]
    return as_json({"model": model.name, "alternatives": ways})


def _jobs(
    service: Service, asking: Asking, texts: Sequence[str], wishes: Sequence[Wish | None]
) -> list[Job]:
    """A job for each text of a request."""
    jobs, ahead = list[Job](), 0
    for n, (text, wish) in enumerate(zip(texts, wishes, strict=True)):
        at = f"texts.{n}" if len(texts) > 1 else ""
        jobs.append(service.job(asking, text=text, request=wish, number=n, at=at, ahead=ahead))
        ahead += len(text)
    return jobs


def _check_alignments(texts: Sequence[str], model: Served, search: Any) -> None:
    """Refuses more numbers than fit into an answer: each symbol looks at each of its source."""
    longest: Any = model.task.limit  # type: ignore[attr-defined]
    most = sum((len(text) + 1) * longest(len(text) + 1, search) for text in texts)
    if most > NUMBERS:
        raise Refused(
            422,
            f"align: texts whose alignments have at most {NUMBERS:,} numbers, these may have "
            f"{most:,}; send fewer at a time, shorter ones, or a smaller max_length",
            "align",
        )


def _wishes(asked: PredictBody, model: Served) -> Sequence[Wish | None]:
    """What is asked of each answer."""
    if asked.requests is None:
        return [None] * len(asked.texts)
    if len(asked.requests) != len(asked.texts):
        raise Refused(
            422,
            f"requests: one for each of the {len(asked.texts)} texts expected, "
            f"{len(asked.requests)} given",
            "requests",
        )
    return [_wish(one, f"requests.{n}", model) for n, one in enumerate(asked.requests)]


def _wish(asked: WishBody, at: str, model: Served) -> Wish | None:
    """What is asked of an answer; None: nothing."""
    wish = asked.wish()
    if wish == Wish():
        return None
    if not model.answering:
        raise UserError(
            f"{at}: prefix, must, ban: only for transducers, whose answers are sequences of "
            "their own"
        )
    return wish


def _inspected(
    model: Served, asked: InspectBody, settings: ServeSettings, stop: Callable[[], None]
) -> bytes:
    """What is inside of a model while it answers, as JSON; in the runner's thread."""
    from regard.views.inspection.inspecting import inspected

    given = (asked.text, asked.target, asked.search, settings.symbols)
    try:
        found = inspected(model.predictor, *given, stop).as_dict()
    except TooLong as error:
        who = f"who runs the server can raise the limit: regard serve --symbols {error.count}"
        at = error.what if error.what in ("text", "target") else None
        raise Refused(422, f"{error.said}; {who}", at) from error
    found["model"]["name"] = model.name
    return to_json(found, inf_nan_mode="null")
