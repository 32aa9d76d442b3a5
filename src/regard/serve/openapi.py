"""What OpenAPI says of the routes: answers and refusals."""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from regard.serve.schemas import Problem

REFUSALS = {
    400: "settings that do not fit, or a text that cannot be answered",
    401: "missing or invalid API key",
    404: "no such model",
    408: "the body did not come in time",
    413: "the body is too large",
    415: "the body is no application/json",
    422: "the body has another shape, or is more than is allowed",
    503: "too much to do, or the server stops; see Retry-After",
}
SECONDS = {"Retry-After": {"description": "seconds to wait", "schema": {"type": "integer"}}}
EVENT = {
    "type": "object",
    "properties": {"event": {"enum": ["grow", "answer", "error"]}, "data": {"type": "string"}},
}
EVENTS: dict[str, Any] = {
    "description": (
        "events: grow {text, tokens, token_logprobs} after each step, then answer, or error "
        "{error}; token_logprobs is absent where the answer has none either"
    ),
    "content": {"text/event-stream": {"schema": EVENT}},
}


def asks(name: str, answer: type[BaseModel] | None = None, **good: Any) -> dict[str, Any]:
    """Return what a route that asks a model says of itself."""
    return _about("POST", name, answer, {"description": "the answer", **good}, REFUSALS)


def tells(
    name: str, answer: type[BaseModel] | None = None, kind: str = "", **more: Any
) -> dict[str, Any]:
    """Return what a route that needs no body says of itself."""
    content = {"content": {kind: {"schema": {"type": "string"}}}} if kind else {}
    good = {"description": "what is there", **content}
    return _about("GET", name, answer, good, (400, 401, 503)) | more


def _about(
    method: str, name: str, answer: Any, good: dict[str, Any], codes: Iterable[int]
) -> dict[str, Any]:
    refusals = {code: {"model": Problem, "description": REFUSALS[code]} for code in codes}
    refusals[503]["headers"] = SECONDS
    responses = {200: good if answer is None else {**good, "model": answer}, **refusals}
    return {"methods": [method], "operation_id": name, "responses": responses}
