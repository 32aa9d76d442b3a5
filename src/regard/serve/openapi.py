"""What OpenAPI says of the routes: bodies, answers, refusals, with the limits of this server."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from regard.serve import schemas
from regard.serve.search_schema import COLDEST, kinds_of, schema_of
from regard.serve.service import Service
from regard.serve.settings import ServeSettings

REFUSALS = {
    400: "settings that do not fit, or a text that cannot be answered",
    401: "no token, or another one",
    404: "no such model",
    408: "the body did not come in time",
    413: "the body is too large",
    415: "the body is no application/json",
    422: "the body has another shape, or is more than is allowed",
    503: "too much to do, or the server stops; see Retry-After",
}
BODIES: dict[str, type[BaseModel]] = {
    "predict": schemas.PredictBody,
    "stream": schemas.StreamBody,
    "inspect": schemas.InspectBody,
    "alternatives": schemas.AlternativesBody,
}
REF = "#/components/schemas/{model}"
EVENT = {
    "type": "object",
    "properties": {"event": {"enum": ["grow", "answer", "error"]}, "data": {"type": "string"}},
}
EVENTS = (
    "events: grow {text, symbols, symbol_scores} after each step, then answer, or error {error}; "
    "symbol_scores is absent where the answer has none either"
)


def asks(name: str, answer: type[BaseModel] | None = None) -> dict[str, Any]:
    """What a route that asks a model says of itself."""
    body = {"$ref": REF.format(model=BODIES[name].__name__)}
    responses = {code: _refusal(about, code) for code, about in REFUSALS.items()}
    good: dict[str, Any] = {"description": "the answer"}
    if name == "stream":
        good = {"description": EVENTS, "content": {"text/event-stream": {"schema": EVENT}}}
    elif answer is not None:
        good["model"] = answer
    return {
        "methods": ["POST"],
        "operation_id": name,
        "responses": {200: good, **responses},
        "openapi_extra": {
            "requestBody": {"required": True, "content": {"application/json": {"schema": body}}}
        },
    }


def tells(
    name: str, answer: type[BaseModel] | None = None, kind: str = "application/json"
) -> dict[str, Any]:
    """What a route that needs no body says of itself."""
    good: dict[str, Any] = {"description": "what is there"}
    if answer is not None:
        good["model"] = answer
    elif kind != "application/json":
        good["content"] = {kind: {"schema": _text()}}
    codes = (400, 401, 404, 503) if name == "static" else (400, 401, 503)
    refusals = {code: _refusal(REFUSALS[code], code) for code in codes}
    return {"methods": ["GET"], "operation_id": name, "responses": {200: good, **refusals}}


def _text() -> dict[str, str]:
    return {"type": "string"}


def _refusal(about: str, code: int) -> dict[str, Any]:
    refusal: dict[str, Any] = {"model": schemas.Problem, "description": about}
    if code == 503:
        seconds = {"description": "seconds to wait", "schema": {"type": "integer"}}
        refusal["headers"] = {"Retry-After": seconds}
    return refusal


def describe(app: FastAPI, service: Service) -> dict[str, Any]:
    """The description of this server; made once."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        pairs = [(body, "validation") for body in BODIES.values()]
        _, own = models_json_schema(pairs, ref_template=REF)  # type: ignore[arg-type]
        parts = schema.setdefault("components", {}).setdefault("schemas", {})
        parts |= own["$defs"]
        _limit(parts, service)
        if service.settings.token is not None:
            schema["components"]["securitySchemes"] = {
                "token": {"type": "http", "scheme": "bearer"}
            }
            schema["security"] = [{"token": []}]
        app.openapi_schema = schema
    return app.openapi_schema


def _limit(parts: dict[str, Any], service: Service) -> None:
    """Writes the limits, the models and their settings into the shapes of bodies."""
    settings = service.settings
    for body in BODIES.values():
        fields = parts[body.__name__]["properties"]
        fields["model"] = {"anyOf": [{"enum": list(service.models)}, {"type": "null"}]}
        fields["search"] = _search(service, settings)
        for name in ("text", "target"):
            _most(fields.get(name, {}), "maxLength", settings.characters)
    fields = parts["PredictBody"]["properties"]
    fields["texts"]["maxItems"] = settings.texts
    fields["texts"]["items"]["maxLength"] = settings.characters
    fields["nbest"]["maximum"] = settings.nbest
    wish = parts["WishBody"]["properties"]
    wish["prefix"]["maxLength"] = settings.characters
    for name in ("must", "ban"):
        wish[name]["maxItems"] = settings.wishes


def _most(field: dict[str, Any], key: str, most: int) -> None:
    for part in field.get("anyOf", [field]):
        if part.get("type") == "string":
            part[key] = most


def _search(service: Service, settings: ServeSettings) -> dict[str, Any]:
    """All that a search of some model here can be; null leaves a setting as it is."""
    ways: list[dict[str, Any]] = []
    for model in service.models.values():
        for number, kind in enumerate(kinds_of(model.estimator)):
            schema = schema_of(kind, settings)
            for field in schema["properties"].values():
                field["anyOf"] = [*field.pop("anyOf", [_moved(field)]), {"type": "null"}]
            if warm := schema["properties"].get("temperature"):  # 0, or not too near to it
                warm["anyOf"][0]["minimum"] = COLDEST
                warm["anyOf"].append({"const": 0})
            if number:  # not the model's own, so it must be named
                schema["properties"]["kind"] = {"const": kind.model_fields["kind"].default}
                schema["required"] = ["kind"]
            if schema not in ways:
                ways.append(schema)
    about = "settings of the search; GET /models says which"
    return {"anyOf": ways, "default": {}, "description": about}


def _moved(field: dict[str, Any]) -> dict[str, Any]:
    """What a field allows, taken out of it; what is said of it stays."""
    return {key: field.pop(key) for key in list(field) if key not in ("title", "description")}
