"""Request bodies: read within the timeout, parsed once, then validated by FastAPI."""

import asyncio
from collections.abc import Callable, Coroutine
from types import FunctionType
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.requests import ClientDisconnect

from regard.serve.api_errors import MAX_SHOWN, ApiError, client_closed

MAX_FIELDS = 100  # per JSON object; every schema has fewer


class JsonRequest(Request):
    """A request with a JSON body that must arrive within the timeout."""

    async def body(self) -> bytes:
        """Read and parse the body; raise ApiError if the body is late or not JSON."""
        media_type = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            raise ApiError(
                415, f"Content-Type: expected application/json, found {media_type[:80]!r}"
            )
        timeout = self.app.state.service.settings.timeout
        try:
            body = await asyncio.wait_for(super().body(), timeout)
            self.value = from_json(body)
        except asyncio.TimeoutError:
            raise ApiError(
                408,
                f"request body: not received within {timeout:g} s",
                headers={"connection": "close"},
            ) from None
        except ClientDisconnect:
            raise client_closed() from None
        except ValueError as error:
            raise ApiError(422, f"request body: invalid JSON: {error}", "") from None
        return body

    async def json(self) -> Any:
        """Return the parsed body; raise ApiError if an object has too many fields to validate."""
        fields = self.value.items() if isinstance(self.value, dict) else ()
        for name, value in (("request body", self.value), *fields):
            for item in value if isinstance(value, list) else (value,):
                if isinstance(item, dict) and len(item) > MAX_FIELDS:
                    expected = f"expected at most {MAX_FIELDS} fields, found {len(item):,}"
                    raise ApiError(422, f"{name[:MAX_SHOWN]}: {expected}")
        return self.value


class JsonRoute(APIRoute):
    """A route that reads its body as a JsonRequest."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return a handler that converts its request to a JsonRequest."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await handler(JsonRequest(request.scope, request.receive))

        return handle


def with_body_schema(endpoint: FunctionType, schema: type) -> Any:
    """Return a copy of an endpoint whose request body has this schema."""
    copy = FunctionType(endpoint.__code__, endpoint.__globals__)
    copy.__doc__ = endpoint.__doc__
    copy.__annotations__ = {**endpoint.__annotations__, "body": schema}
    return copy
