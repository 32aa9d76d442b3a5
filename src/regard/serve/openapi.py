"""OpenAPI metadata of the routes: responses and errors."""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from regard.serve.schemas import ErrorResponse

ERRORS = {
    400: "invalid settings or text",
    401: "missing or invalid API key",
    404: "unknown model",
    408: "the request body did not arrive in time",
    413: "the request body is too large",
    415: "the request body is not application/json",
    422: "the request body does not match the schema or exceeds a limit",
    503: "overloaded or shutting down; see Retry-After",
}
RETRY_AFTER = {"Retry-After": {"description": "seconds to wait", "schema": {"type": "integer"}}}
EVENT = {
    "type": "object",
    "properties": {"event": {"enum": ["partial", "result", "error"]}, "data": {"type": "string"}},
}
EVENT_STREAM: dict[str, Any] = {
    "description": (
        "events: partial {text, tokens, token_logprobs} after each step, then result, or error "
        "{error}; partial has token_logprobs only if result has them"
    ),
    "content": {"text/event-stream": {"schema": EVENT}},
}


def post_route(name: str, schema: type[BaseModel] | None = None, **success: Any) -> dict[str, Any]:
    """Return the metadata of a route that runs a model."""
    return _route("POST", name, schema, {"description": "success", **success}, ERRORS)


def get_route(
    name: str, schema: type[BaseModel] | None = None, media_type: str = "", **more: Any
) -> dict[str, Any]:
    """Return the metadata of a route without a request body."""
    content = {"content": {media_type: {"schema": {"type": "string"}}}} if media_type else {}
    success = {"description": "success", **content}
    return _route("GET", name, schema, success, (400, 401, 503)) | more


def _route(
    method: str, name: str, schema: Any, success: dict[str, Any], statuses: Iterable[int]
) -> dict[str, Any]:
    errors = {code: {"model": ErrorResponse, "description": ERRORS[code]} for code in statuses}
    errors[503]["headers"] = RETRY_AFTER
    responses = {200: success if schema is None else {**success, "model": schema}, **errors}
    return {"methods": [method], "operation_id": name, "responses": responses}
