"""Search settings of a request: the model's own settings, changed within the server's limits."""

from collections.abc import Iterable
from typing import Any

from regard.config.configs import Config
from regard.config.search_changes import search_kinds
from regard.core.errors import UserError
from regard.inference.predictor import Predictor
from regard.serve.api_errors import MAX_SHOWN, shorten
from regard.serve.settings import ServeSettings

# Larger values overflow or make no difference.
MAX_VALUES = {
    "length_penalty": 10.0,
    "coverage_penalty": 100.0,
    "diversity_penalty": 100.0,
    "temperature": 100.0,
    "max_seconds": 60.0,
}
MIN_TEMPERATURE = 0.01  # except 0 (greedy)


def resolve_search(predictor: Predictor, changes: dict[str, Any], settings: ServeSettings) -> Any:
    """Return the model's search with the settings of a request.

    Raise UserError if a setting is unknown, invalid or exceeds a limit of the server.
    """
    search = predictor.search_options(**changes)
    for name, value in changes.items():
        if name not in type(search).model_fields:  # null passes the validation above
            known = ", ".join(type(search).model_fields)
            raise UserError(
                f"search.{shorten(name, MAX_SHOWN)}: unknown search setting; available: {known}"
            )
        resolved = getattr(search, name)
        if value is not None and (value != resolved or isinstance(value, bool)):
            raise UserError(f"search.{name}: expected {resolved!r}, found {value!r}")
    for name, limit in max_values(settings).items():
        if (value := getattr(search, name, None)) is not None and value > limit:
            raise UserError(
                f"search.{name}: expected at most {limit:g} on this server, found {value:g}"
            )
    if 0 < getattr(search, "temperature", 1.0) < MIN_TEMPERATURE:
        raise UserError(
            f"search.temperature: expected 0 (greedy) or at least {MIN_TEMPERATURE:g}, "
            f"found {search.temperature:g}"
        )
    return search


def max_values(settings: ServeSettings) -> dict[str, float]:
    """Return the maximum of each search setting that has one on this server."""
    lengths = dict.fromkeys(("min_length", "max_length"), settings.max_length)
    return {"beam": settings.max_beam, **lengths, **MAX_VALUES}


def search_classes(config: Config) -> list[Any]:
    """Return the search classes that a model supports, first the one in its configuration."""
    return sorted(search_kinds(config).values(), key=lambda one: one is not type(config.search))


def search_class_schema(search_class: Any, settings: ServeSettings) -> dict[str, Any]:
    """Return the JSON schema of a search class with the server's limits."""
    schema: dict[str, Any] = search_class.model_json_schema()
    for name, limit in max_values(settings).items():
        field = schema["properties"].get(name, {})
        for choice in field.get("anyOf", [field]):
            if choice.get("type") in ("integer", "number"):
                choice["maximum"] = limit
    return schema


def model_search_schema(config: Config, settings: ServeSettings) -> dict[str, Any]:
    """Return the JSON schema of a model's search settings."""
    schemas = [search_class_schema(one, settings) for one in search_classes(config)]
    return schemas[0] if len(schemas) == 1 else {"oneOf": schemas}


def request_search_schema(configs: Iterable[Config], settings: ServeSettings) -> dict[str, Any]:
    """Return the JSON schema of the field `search` in requests for any model.

    The value null keeps the setting of the model.
    """
    choices: list[dict[str, Any]] = []
    for config in configs:
        for index, search_class in enumerate(search_classes(config)):
            schema = search_class_schema(search_class, settings)
            for field in schema["properties"].values():
                field["anyOf"] = [*field.pop("anyOf", [_pop_type(field)]), {"type": "null"}]
            if temperature := schema["properties"].get("temperature"):
                temperature["anyOf"][0]["minimum"] = MIN_TEMPERATURE
                temperature["anyOf"].append({"const": 0})
            if index:  # a kind other than the model's own must be named
                schema["properties"]["kind"] = {"const": search_class.model_fields["kind"].default}
                schema["required"] = ["kind"]
            if schema not in choices:
                choices.append(schema)
    return {"anyOf": choices, "default": {}}


def _pop_type(field: dict[str, Any]) -> dict[str, Any]:
    """Remove the type and bounds of a field and return them; title and description stay."""
    return {key: field.pop(key) for key in list(field) if key not in ("title", "description")}
