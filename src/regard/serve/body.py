"""Bodies: read within their time, parsed once, and handed to FastAPI, which checks their shape."""

import asyncio
from collections.abc import Callable, Coroutine
from types import FunctionType
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.requests import ClientDisconnect

from regard.serve.api_errors import SHOWN, Refused, gone

FIELDS = 100  # of an object; no shape has so many


class JsonRequest(Request):
    """A request whose body is JSON, and comes in time."""

    async def body(self) -> bytes:
        """Read it; refuse another kind of content, and what is no JSON."""
        media = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media != "application/json":
            raise Refused(
                415,
                f"Content-Type: application/json expected, {media[:80]!r} found; the body is JSON",
            )
        seconds = self.app.state.service.settings.timeout
        try:
            body = await asyncio.wait_for(super().body(), seconds)
            self.value = from_json(body)
        except asyncio.TimeoutError:
            raise Refused(
                408, f"the body did not come within {seconds:g} s", headers={"connection": "close"}
            ) from None
        except ClientDisconnect:
            raise gone() from None
        except ValueError as error:
            raise Refused(422, f"the body: Invalid JSON: {error}", "") from None
        return body

    async def json(self) -> Any:
        """Return it; refuse very many fields: to note what is wrong with each takes too long."""
        found = self.value.items() if isinstance(self.value, dict) else ()
        for at, value in (("the body", self.value), *found):
            for part in value if isinstance(value, list) else (value,):
                if isinstance(part, dict) and len(part) > FIELDS:
                    count = f"at most {FIELDS} fields, {len(part):,} given"
                    raise Refused(422, f"{at[:SHOWN]}: {count}")
        return self.value


class JsonRoute(APIRoute):
    """A route to which a body comes."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with our way to read bodies."""
        answer = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await answer(JsonRequest(request.scope, request.receive))

        return handle


def with_body(endpoint: FunctionType, body: type) -> Any:
    """Return a copy of an endpoint whose body has this shape: that of a server, with its limits."""
    copy = FunctionType(endpoint.__code__, endpoint.__globals__)
    copy.__doc__ = endpoint.__doc__
    copy.__annotations__ = {**endpoint.__annotations__, "body": body}
    return copy
