"""Refusals: every error is a JSON object that says what, where, and what to do."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import HTTPException as ApiException
from fastapi.exceptions import RequestValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from regard.core.errors import UserError

LATER = {"retry-after": "1"}
SHOWN = 80  # characters of what was given that an error repeats
TOO_LONG = {
    "string_too_long": "at most {most} characters, {count} given; cut it",
    "texts": "at most {most} at a time, {count} given; send them in parts",
    "too_long": "at most {most} words, {count} given",
}
OBJECT = "Input should be an object"
IN_JSON = {  # what pydantic says of Python's types, in the words of JSON
    "dict_type": OBJECT,
    "model_attributes_type": OBJECT,
    "list_type": "Input should be a valid array",
}
DAMAGE = "the server failed; what was asked is not to blame, its log says more"


class Refused(ApiException):
    """A request that is not answered. at: the place in the body that is to blame."""

    def __init__(
        self,
        status: int,
        error: str,
        at: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(status, error, headers)
        self.at = at

    def response(self) -> Response:
        """What the client gets."""
        place = {} if self.at is None else {"at": self.at}
        return as_json({"error": self.detail, **place}, self.status_code, self.headers)


def later(error: str, headers: dict[str, str] | None = None) -> Refused:
    """A refusal that may be none in a moment."""
    return Refused(503, error, headers={**LATER, **(headers or {})})


def gone() -> Refused:
    """That the client is gone: nobody reads it, but it is counted."""
    return Refused(499, "the client is gone")


def as_json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer; numbers that are none are null."""
    content = to_json(value, inf_nan_mode="null")
    return Response(content, status, headers, media_type="application/json")


def shortened(text: str, most: int = 1000) -> str:
    """A text that may repeat what was given, which may be long."""
    return text if len(text) <= most else f"{text[:most]}..."


def wrong_shape(errors: Sequence[Any]) -> Refused:
    """The first thing that is wrong with a body, and where."""
    first = errors[0]
    at = ".".join(str(part) for part in first["loc"][1:])  # the first is "body"
    at = shortened(at, SHOWN)  # fields have any name
    given, fault = first.get("input"), first["type"]
    if fault in TOO_LONG:
        what = TOO_LONG["texts" if at == "texts" else fault]
        said = what.format(most=first["ctx"]["max_length"], count=len(given))
        return Refused(422, f"{at}: {said}", at)
    shown = repr(given) if isinstance(given, str | int | float | None) else type(given).__name__
    tail = "" if fault == "missing" else f", {shortened(shown, SHOWN)} given"
    return Refused(422, f"{at or 'the body'}: {IN_JSON.get(fault, first['msg'])}{tail}", at)


async def on_wrong_shape(request: Request, error: Any) -> Response:
    """Return what a body of another shape becomes."""
    return wrong_shape(error.errors()).response()


async def on_refused(request: Request, error: Any) -> Response:
    """Return what a refusal becomes."""
    response: Response = error.response()
    return response


async def on_user_error(request: Request, error: Any) -> Response:
    """Return what the user can put right."""
    return Refused(400, shortened(str(error))).response()


async def on_http_error(request: Request, error: Any) -> Response:
    """Return that there is no such path, or no such method there."""
    path, method = request.url.path, request.method
    said = {
        404: f"{path[:SHOWN]}: no such path; GET /openapi.json lists them",
        405: f"{method} {path[:SHOWN]}: no such method here; see the header Allow",
    }
    told = said.get(error.status_code, str(error.detail))
    return as_json({"error": told}, error.status_code, error.headers)


HANDLERS = {
    HTTPException: on_http_error,
    Refused: on_refused,
    RequestValidationError: on_wrong_shape,
    UserError: on_user_error,
}
