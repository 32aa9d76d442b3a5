"""The routes that ask a model."""

import itertools
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
from regard.tasks.values import FIELDS, NBEST_FIELDS
from regard.tasks.values import Constraints as Wish

NUMBERS = 5_000_000  # of the alignments of a request; each takes some 10 bytes, and 60 of memory


async def predict(request: Request, body: PredictBody) -> Response:
    """Answer texts."""
    began = time.monotonic()
    service: Service = request.app.state.service
    asking = service.asking(body, "predict", body.nbest, body.align)
    texts, name = body.texts, asking.model.name
    wishes = [None] * len(texts) if body.requests is None else _wishes(body, asking.model)
    if body.align:
        _check_alignments(texts, asking)
    ahead = itertools.accumulate(map(len, texts), initial=0)
    jobs = [
        Job(asking, text=text, constraints=wish, number=n, several=len(texts) > 1, ahead=before)
        for n, (text, wish, before) in enumerate(zip(texts, wishes, ahead, strict=False))
    ]
    found = await service.outcomes(request, jobs)
    service.metrics.tokens.labels(name).inc(sum(len(one.tokens) for one in found))
    parts = NBEST_FIELDS if body.nbest > 1 else FIELDS
    answers = [one.as_dict(parts) for one in found]
    took = round(1000 * (time.monotonic() - began), 3)
    return as_json({"model": name, "answers": answers, "milliseconds": took})


async def stream_answer(request: Request, body: StreamBody) -> Response:
    """Answer a text while one looks on: server-sent events."""
    service: Service = request.app.state.service
    asking = service.asking(body, "stream")
    wish = None if body.request is None else _wish(body.request, "request", asking.model)
    return Events(service, Job(asking, text=body.text, constraints=wish), asking.model)


async def inspect(request: Request, body: InspectBody) -> Response:
    """Look into a model while it answers a text."""
    service: Service = request.app.state.service
    model = service.asking(body, "inspect").model  # refuses a search that is too much
    found = await service.alone(
        request, lambda stop: _inspected(model, body, service.settings, stop)
    )
    return Response(found, media_type="application/json")


async def alternatives(request: Request, body: AlternativesBody) -> Response:
    """Say how an answer may go on behind a beginning."""
    service: Service = request.app.state.service
    asking = service.asking(body, "alternatives")
    model, search = asking.model, asking.search
    wish = _wish(body.request, "request", model) or Wish()
    call = model.predictor.alternatives
    found = await service.alone(
        request, lambda stop: call(body.text, wish, body.count, search, lambda *step: stop())
    )
    ways = [{"token": s, "p": round(p, 6), "answer": a.as_dict()} for s, p, a in found]
    return as_json({"model": model.name, "alternatives": ways})


def _check_alignments(texts: Sequence[str], asking: Asking) -> None:
    """Refuse more numbers than fit into an answer: each token looks at each of its source."""
    longest: Any = asking.model.task.limit  # type: ignore[attr-defined]
    most = sum((len(text) + 1) * longest(len(text) + 1, asking.search) for text in texts)
    if most > NUMBERS:
        raise Refused(
            422,
            f"align: texts whose alignments have at most {NUMBERS:,} numbers, these may have "
            f"{most:,}; send fewer at a time, shorter ones, or a smaller max_length",
            "align",
        )


def _wishes(body: PredictBody, model: Served) -> Sequence[Wish | None]:
    """Return what is asked of each answer."""
    asked, texts = body.requests or (), body.texts
    if len(asked) != len(texts):
        count = f"one for each of the {len(texts)} texts expected, {len(asked)} given"
        raise Refused(422, f"requests: {count}", "requests")
    return [_wish(one, f"requests.{n}", model) for n, one in enumerate(asked)]


def _wish(asked: WishBody, at: str, model: Served) -> Wish | None:
    """Return what is asked of an answer; None: nothing."""
    wish = Wish(asked.prefix, tuple(asked.must), tuple(asked.ban))
    if wish == Wish():
        return None
    if "constraints" not in model.predictor.abilities:
        raise UserError(
            f"{at}: prefix, must, ban: only for transducers, whose answers are sequences of "
            "their own"
        )
    return wish


def _inspected(
    model: Served, body: InspectBody, settings: ServeSettings, stop: Callable[[], None]
) -> bytes:
    """Return what is inside of a model while it answers, as JSON; in the thread of the models."""
    from regard.views.inspection.inspecting import inspected

    given = (body.text, body.target, body.search, settings.max_inspect_tokens)
    try:
        found = inspected(model.predictor, *given, stop).as_dict()
    except TooLong as error:
        who = f"raise the limit with regard serve --max-inspect-tokens {error.count}"
        at = error.what if error.what in ("text", "target") else None
        raise Refused(422, f"{error.said}; {who}", at) from error
    found["model"]["name"] = model.name
    return to_json(found, inf_nan_mode="null")
