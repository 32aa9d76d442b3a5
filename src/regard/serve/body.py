"""Bodies: read, checked against their shape, and against the limits."""

import asyncio
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request

from regard.serve.api_errors import SHOWN, Refused, gone, wrong_shape
from regard.serve.schemas import Asked, WishBody
from regard.serve.settings import ServeSettings

Shape = TypeVar("Shape", bound=Asked)
FIELDS = 100  # of an object; no shape has so many


async def read(request: Request, shape: type[Shape], settings: ServeSettings) -> Shape:
    """The body of a request."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(
            415, f"Content-Type: application/json expected, {kind[:80]!r} found; the body is JSON"
        )
    try:
        body = await asyncio.wait_for(request.body(), settings.seconds)
    except asyncio.TimeoutError:
        seconds = settings.seconds
        raise Refused(
            408, f"the body did not come within {seconds:g} s", headers={"connection": "close"}
        ) from None
    except ClientDisconnect:
        raise gone() from None
    check_fields(body)
    try:
        return shape.model_validate_json(body)
    except ValidationError as error:
        raise wrong_shape(error) from None


def check_fields(body: bytes) -> None:
    """Refuses objects with very many fields: to note what is wrong with each takes too long."""
    try:
        found = from_json(body)
    except ValueError:
        return  # what is no JSON has no shape either, and is refused with it
    outer = found.items() if isinstance(found, dict) and _few(found, "the body") else ()
    for name, value in outer:
        for part in value if isinstance(value, list) else (value,):
            _few(part, name)


def _few(value: Any, at: str) -> bool:
    if isinstance(value, dict) and len(value) > FIELDS:
        raise Refused(422, f"{at[:SHOWN]}: at most {FIELDS} fields, {len(value):,} given")
    return True


def check_texts(texts: Sequence[str], settings: ServeSettings) -> None:
    """Refuses too many texts, and texts that are too long."""
    if len(texts) > settings.texts:
        raise Refused(
            422,
            f"texts: at most {settings.texts} at a time, {len(texts)} given; send them in parts",
            "texts",
        )
    for place, text in enumerate(texts):
        check_text(text, f"texts.{place}", settings)


def check_text(text: str, at: str, settings: ServeSettings) -> None:
    """Refuses a text that is too long."""
    if len(text) > settings.characters:
        raise Refused(
            422, f"{at}: at most {settings.characters} characters, {len(text)} given; cut it", at
        )


def check_wish(wish: WishBody, at: str, settings: ServeSettings) -> None:
    """Refuses wishes that are too long or too many."""
    check_text(wish.prefix, f"{at}.prefix", settings)
    for name, words in (("must", wish.must), ("ban", wish.ban)):
        if len(words) > settings.wishes:
            raise Refused(
                422,
                f"{at}.{name}: at most {settings.wishes} words, {len(words)} given",
                f"{at}.{name}",
            )
        for word in words:
            check_text(word, f"{at}.{name}", settings)
