"""Routes that run a model: predict, stream, inspect, alternatives."""

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from regard.core.errors import UserError
from regard.serve.api_errors import ApiError, json_response
from regard.serve.cost import check_cost, inspect_cost, predict_cost
from regard.serve.jobs import Job, PredictHandler
from regard.serve.request_sources import RequestSource, request_sources
from regard.serve.schemas import (
    AlternativesRequest,
    ConstraintsSchema,
    InspectRequest,
    PredictRequest,
    SourceRequest,
    StreamRequest,
)
from regard.serve.served_models import ServedModel
from regard.serve.service import Service, client_address
from regard.serve.settings import ServeSettings
from regard.serve.streaming import EventStream
from regard.tasks.inspection.forced_pass import TooLong
from regard.tasks.values import FIELDS, NBEST_FIELDS, WITH_PROBABILITY, Constraints

MAX_ALIGNMENT_SIZE = 5_000_000  # weights per request; each takes 10 bytes of JSON and 60 of memory


async def predict(request: Request, body: PredictRequest) -> Response:
    """Return predictions for texts or files."""
    start = time.monotonic()
    service: Service = request.app.state.service
    handler = service.predict_handler(body, "predict", body.nbest, body.return_alignment)
    max_values, name = service.settings.max_file_values, handler.model.name
    sources = request_sources(body.texts, body.inputs, handler.model, max_values)
    constraints = _constraints_per_source(body, len(sources), handler.model)
    if body.return_alignment:
        _check_alignment_size(sources, handler)
    costs = [
        predict_cost(handler, source, constraint)
        for source, constraint in zip(sources, constraints, strict=True)
    ]
    own = "inputs" if body.texts is None else "texts"
    for index, (cost, constraint) in enumerate(zip(costs, constraints, strict=True)):
        field = f"{own}.{index}" if constraint is None else f"constraints.{index}"
        check_cost(cost, service.settings.max_work, field)
    ahead, client = itertools.accumulate(costs, initial=0), client_address(request)
    jobs = [
        Job(
            handler,
            source=source,
            constraints=constraint,
            index=index,
            cost=cost,
            cost_ahead=before,
            client=client,
        )
        for index, (source, constraint, cost, before) in enumerate(
            zip(sources, constraints, costs, ahead, strict=False)
        )
    ]
    predictions = await service.wait_for(request, jobs)
    service.metrics.tokens.labels(name).inc(sum(len(one.tokens) for one in predictions))
    fields = NBEST_FIELDS if body.nbest > 1 else FIELDS

    def as_dicts() -> list[dict[str, Any]]:
        """Return the predictions for JSON. The samples of sounds are computed here."""
        return [one.as_dict(fields, WITH_PROBABILITY) for one in predictions]

    slow = handler.model.predictor.config.task.writes_sounds
    found = await run_in_threadpool(as_dicts) if slow else as_dicts()
    latency = round(1000 * (time.monotonic() - start), 3)
    return json_response(
        {
            "model": name,
            "predictions": found,
            "latency_ms": latency,
        }
    )


async def stream(request: Request, body: StreamRequest) -> Response:
    """Stream the prediction for a text or file as server-sent events."""
    service: Service = request.app.state.service
    handler = service.predict_handler(body, "stream")
    schema = body.constraints or ConstraintsSchema()
    constraints = _constraints(schema, "constraints", handler.model)
    source = _single_source(body, handler.model, service)
    cost = predict_cost(handler, source, constraints)
    own = "input" if body.text is None else "text"
    check_cost(cost, service.settings.max_work, own if constraints is None else "constraints")
    client = client_address(request)
    job = Job(handler, source=source, constraints=constraints, cost=cost, client=client)
    return EventStream(service, job, handler.model)


async def inspect(request: Request, body: InspectRequest) -> Response:
    """Return attention, saliency, gates, probabilities and the search tree for one source."""
    service: Service = request.app.state.service
    settings = service.settings
    handler = service.predict_handler(body, "inspect")  # checks the search settings
    source = _single_source(body, handler.model, service)
    cost = inspect_cost(handler, source, body.target, settings.max_inspect_tokens)
    content = await service.run_single(
        request, lambda check: _inspect_as_json(handler.model, source, body, settings, check), cost
    )
    return Response(content, media_type="application/json")


async def alternatives(request: Request, body: AlternativesRequest) -> Response:
    """List the most probable next tokens after a prefix, each with its prediction."""
    service: Service = request.app.state.service
    handler = service.predict_handler(body, "alternatives")
    model, search = handler.model, handler.search
    constraints = _constraints(body.constraints, "constraints", model) or Constraints()
    source = _single_source(body, handler.model, service)
    cost = predict_cost(handler, source, constraints, body.top)
    check_cost(cost, service.settings.max_work, "constraints")
    call = model.predictor.alternatives
    found = await service.run_single(
        request,
        lambda check: call(
            source.read(model.task), constraints, body.top, search, lambda *step: check()
        ),
        cost,
    )
    items = [
        {"token": token, "probability": round(p, 6), "prediction": prediction.as_dict()}
        for token, p, prediction in found
    ]
    return json_response({"model": model.name, "alternatives": items})


def _single_source(body: SourceRequest, model: ServedModel, service: Service) -> RequestSource:
    """Return the source of a request for one prediction."""
    texts = None if body.text is None else [body.text]
    files = None if body.input is None else [body.input]
    max_values = service.settings.max_file_values
    (source,) = request_sources(texts, files, model, max_values, ("text", "input"))
    return source


def _check_alignment_size(sources: Sequence[RequestSource], handler: PredictHandler) -> None:
    """Raise ApiError if the alignments may be too large for a response."""
    max_length: Any = handler.model.task.max_output_length  # type: ignore[attr-defined]
    lengths = [len(source) + 1 for source in sources]
    size = sum(length * max_length(length, handler.search) for length in lengths)
    if size > MAX_ALIGNMENT_SIZE:
        raise ApiError(
            422,
            f"return_alignment: expected at most {MAX_ALIGNMENT_SIZE:,} attention weights per "
            f"request, found up to {size:,}; send fewer or shorter texts, or a smaller max_length",
            "return_alignment",
        )


def _constraints_per_source(
    body: PredictRequest, num_sources: int, model: ServedModel
) -> Sequence[Constraints | None]:
    """Return the constraints of each source (None: no constraints)."""
    if body.constraints is None:
        return [None] * num_sources
    if len(body.constraints) != num_sources:
        count = f"expected one item per text ({num_sources}), found {len(body.constraints)}"
        raise ApiError(422, f"constraints: {count}", "constraints")
    return [
        _constraints(one, f"constraints.{index}", model)
        for index, one in enumerate(body.constraints)
    ]


def _constraints(schema: ConstraintsSchema, field: str, model: ServedModel) -> Constraints | None:
    """Return the constraints in a request, or None if all of them are empty.

    field: path of the constraints in the request body, shown in errors.
    """
    constraints = Constraints(schema.prefix, tuple(schema.require), tuple(schema.ban))
    if constraints == Constraints():
        return None
    if "constraints" not in model.predictor.abilities:
        raise UserError(f"{field}: prefix, require and ban are only supported for task transduce")
    return constraints


def _inspect_as_json(
    model: ServedModel,
    source: RequestSource,
    body: InspectRequest,
    settings: ServeSettings,
    check: Callable[[], None],
) -> bytes:
    """Return the inspection of a source as JSON. Called in the model thread.

    check: raises an exception if the request is cancelled.
    """
    from regard.views.inspection.inspecting import inspect_source

    options = (body.target, body.search, settings.max_inspect_tokens)
    try:
        parsed = source.read(model.task)
        inspection = inspect_source(model.predictor, parsed, *options, check).as_dict()
    except TooLong as error:
        option = f"regard serve --max-inspect-tokens {error.count}"
        field = error.side if error.side in ("text", "target") else None
        raise ApiError(
            422, f"{error.message}; {error.advice}, or raise the limit with {option}", field
        ) from error
    inspection["model"]["name"] = model.name
    return to_json(inspection, inf_nan_mode="null")
