"""Errors as JSON responses: what is wrong, and the field of the request that caused it."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import HTTPException as FastApiException
from fastapi.exceptions import RequestValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from regard.core.errors import UserError

RETRY_AFTER = {"retry-after": "1"}
MAX_SHOWN = 80  # characters of an input value that an error repeats
TOO_LONG = {
    "string_too_long": "expected at most {max} characters, found {count}",
    "texts": "expected at most {max} texts, found {count}; split them into several requests",
    "inputs": "expected at most {max} files, found {count}; split them into several requests",
    "too_long": "expected at most {max} words, found {count}",
}
OBJECT = "Input should be an object"
JSON_MESSAGES = {  # pydantic's messages about Python types, in terms of JSON
    "dict_type": OBJECT,
    "model_attributes_type": OBJECT,
    "list_type": "Input should be a valid array",
}
INTERNAL_ERROR = "internal error; see the server log"


class ApiError(FastApiException):
    """An error response. field: the path of the invalid field in the request body."""

    def __init__(
        self,
        status: int,
        error: str,
        field: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(status, error, headers)
        self.field = field

    def response(self) -> Response:
        """Return the error as a JSON response."""
        field = {} if self.field is None else {"field": self.field}
        return json_response({"error": self.detail, **field}, self.status_code, self.headers)


def unavailable(error: str, headers: dict[str, str] | None = None) -> ApiError:
    """Return a 503 error: the client may retry later."""
    return ApiError(503, error, headers={**RETRY_AFTER, **(headers or {})})


def client_closed() -> ApiError:
    """Return a 499 error for the metrics: the client has disconnected and gets no response."""
    return ApiError(499, "client closed the connection")


def json_response(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON response; NaN and infinity become null."""
    content = to_json(value, inf_nan_mode="null")
    return Response(content, status, headers, media_type="application/json")


def shorten(text: str, max_chars: int = 1000) -> str:
    """Return a text truncated to a maximum length."""
    return text if len(text) <= max_chars else f"{text[:max_chars]}..."


def invalid_body(errors: Sequence[Any]) -> ApiError:
    """Return a 422 error for the first validation error of a request body."""
    first = errors[0]
    field = ".".join(str(part) for part in first["loc"][1:])  # the first part is "body"
    field = shorten(field, MAX_SHOWN)  # clients choose the names of fields
    value, kind = first.get("input"), first["type"]
    if kind in TOO_LONG:
        message = TOO_LONG[field if field in ("texts", "inputs") else kind]
        message = message.format(max=first["ctx"]["max_length"], count=len(value))
        return ApiError(422, f"{field}: {message}", field)
    shown = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
    found = "" if kind == "missing" else f", found {shorten(shown, MAX_SHOWN)}"
    message = JSON_MESSAGES.get(kind, first["msg"])
    return ApiError(422, f"{field or 'request body'}: {message}{found}", field)


async def on_invalid_body(request: Request, error: Any) -> Response:
    """Return the response to a request body that fails validation."""
    return invalid_body(error.errors()).response()


async def on_api_error(request: Request, error: Any) -> Response:
    """Return the response of an ApiError."""
    response: Response = error.response()
    return response


async def on_user_error(request: Request, error: Any) -> Response:
    """Return the response to a UserError."""
    return ApiError(400, shorten(str(error))).response()


async def on_http_error(request: Request, error: Any) -> Response:
    """Return the response to an unknown path or method."""
    path, method = request.url.path, request.method
    messages = {
        404: f"unknown path {path[:MAX_SHOWN]}; GET /openapi.json lists all paths",
        405: f"{method} {path[:MAX_SHOWN]}: method not allowed; see the Allow header",
    }
    message = messages.get(error.status_code, str(error.detail))
    return json_response({"error": message}, error.status_code, error.headers)


HANDLERS = {
    HTTPException: on_http_error,
    ApiError: on_api_error,
    RequestValidationError: on_invalid_body,
    UserError: on_user_error,
}
