"""The search of a request: that of the model, changed within the limits."""

from collections.abc import Iterable
from typing import Any, get_args

from regard.config.configs import Config
from regard.core.errors import UserError
from regard.inference.predictor import Predictor
from regard.serve.api_errors import SHOWN, shortened
from regard.serve.settings import ServeSettings

# Beyond these, numbers overflow or mean nothing.
MOST = {
    "length_penalty": 10.0,
    "coverage_penalty": 100.0,
    "diversity_penalty": 100.0,
    "temperature": 100.0,
}
COLDEST = 0.01  # the least temperature above 0


def chosen_search(predictor: Predictor, changes: dict[str, Any], settings: ServeSettings) -> Any:
    """Return the search with what a request asks for; refuse what does not fit, or is too much."""
    search = predictor.search_options(**changes)
    for name, given in changes.items():
        if name not in type(search).model_fields:  # only null comes so far
            known = ", ".join(type(search).model_fields)
            raise UserError(f"search.{shortened(name, SHOWN)}: no setting here; there are {known}")
        taken = getattr(search, name)
        if given is not None and (given != taken or isinstance(given, bool)):
            raise UserError(f"search.{name}: {taken!r} expected, {given!r} given")
    for name, most in most_of(settings).items():
        if (value := getattr(search, name, None)) is not None and value > most:
            raise UserError(f"search.{name}: at most {most:g} on this server, {value:g} asked for")
    if 0 < getattr(search, "temperature", 1.0) < COLDEST:
        raise UserError(f"search.temperature: 0, which is greedy, or at least {COLDEST:g} expected")
    return search


def most_of(settings: ServeSettings) -> dict[str, float]:
    """The most that a setting may be."""
    lengths = dict.fromkeys(("min_length", "max_length"), settings.max_length)
    return {"beam": settings.max_beam, **lengths, **MOST}


def kinds_of(config: Config) -> list[Any]:
    """Return the classes of search that a model has, its own first."""
    annotation: Any = type(config).model_fields["search"].annotation
    kinds = list(get_args(annotation) or (annotation,))
    return sorted(kinds, key=lambda kind: kind is not type(config.search))


def schema_of(kind: Any, settings: ServeSettings) -> dict[str, Any]:
    """The JSON schema of a class of search, with the limits of the server."""
    schema: dict[str, Any] = kind.model_json_schema()
    for name, most in most_of(settings).items():
        field = schema["properties"].get(name, {})
        for part in field.get("anyOf", [field]):
            if part.get("type") in ("integer", "number"):
                part["maximum"] = most
    return schema


def settings_schema(config: Config, settings: ServeSettings) -> dict[str, Any]:
    """The JSON schema of all that the search of a model can be."""
    schemas = [schema_of(kind, settings) for kind in kinds_of(config)]
    return schemas[0] if len(schemas) == 1 else {"oneOf": schemas}


def searches_schema(configs: Iterable[Config], settings: ServeSettings) -> dict[str, Any]:
    """Return all that a search of some model can be; null leaves a setting as it is."""
    ways: list[dict[str, Any]] = []
    for config in configs:
        for number, kind in enumerate(kinds_of(config)):
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
    return {"anyOf": ways, "default": {}}


def _moved(field: dict[str, Any]) -> dict[str, Any]:
    """Return what a field allows, taken out of it; what is said of it stays."""
    return {key: field.pop(key) for key in list(field) if key not in ("title", "description")}
