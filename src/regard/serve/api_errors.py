"""Refusals: every error is a JSON object that says what, where, and what to do."""

from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from regard.core.errors import UserError

LATER = {"retry-after": "1"}
SHOWN = 80  # characters of what was given that an error repeats
DAMAGE = "the server failed; what was asked is not to blame, its log says more"


class Refused(Exception):
    """A request that is not answered. at: the place in the body that is to blame."""

    def __init__(
        self,
        status: int,
        error: str,
        at: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(error)
        self.status, self.error, self.at, self.headers = status, error, at, headers

    def response(self) -> Response:
        """What the client gets."""
        place = {} if self.at is None else {"at": self.at}
        return as_json({"error": self.error, **place}, self.status, self.headers)


def later(error: str, headers: dict[str, str] | None = None) -> Refused:
    """A refusal that may be none in a moment."""
    return Refused(503, error, headers={**LATER, **(headers or {})})


def gone() -> Refused:
    """That the client is gone: nobody reads it, but it is counted."""
    return Refused(499, "the client is gone")


def as_json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer; numbers that are none are null."""
    content = to_json(value, inf_nan_mode="null")
    return Response(content, status, headers, media_type="application/json")


def shortened(text: str, most: int = 1000) -> str:
    """A text that may repeat what was given, which may be long."""
    return text if len(text) <= most else f"{text[:most]}..."


def wrong_shape(error: ValidationError) -> Refused:
    """The first thing that is wrong with a body, and where."""
    first = error.errors(include_url=False, include_context=False)[0]
    at = shortened(".".join(str(part) for part in first["loc"]), SHOWN)  # fields have any name
    what = first["msg"].removeprefix("Value error, ")
    given = first.get("input")
    plain = isinstance(given, str | int | float | None) and first["type"] != "json_invalid"
    shown = repr(given) if plain else type(given).__name__
    silent = first["type"] in ("json_invalid", "missing")
    tail = "" if silent else f", {shortened(shown, SHOWN)} given"
    return Refused(422, f"{at}: {what}{tail}" if at else f"the body: {what}{tail}", at)


async def on_refused(request: Request, error: Exception) -> Response:
    """What a refusal becomes."""
    assert isinstance(error, Refused)
    return error.response()


async def on_user_error(request: Request, error: Exception) -> Response:
    """What the user can put right."""
    return Refused(400, shortened(str(error))).response()


async def on_http_error(request: Request, error: Exception) -> Response:
    """No such path, or no such method there."""
    assert isinstance(error, HTTPException)
    path, method = request.url.path, request.method
    said = {
        404: f"{path[:SHOWN]}: no such path; GET /openapi.json lists them",
        405: f"{method} {path[:SHOWN]}: no such method here; see the header Allow",
    }
    headers = dict(error.headers) if error.headers else None
    return Refused(
        error.status_code, said.get(error.status_code, str(error.detail)), headers=headers
    ).response()


HANDLERS = {
    Refused: on_refused,
    UserError: on_user_error,
    HTTPException: on_http_error,
}
