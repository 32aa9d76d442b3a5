"""The search of a trained model with overridden settings."""

from typing import Any

from pydantic import ValidationError

from regard.config.load import Config
from regard.core.errors import UserError
from regard.core.options import kinds_of


def changed_search(config: Config, changes: dict[str, Any]) -> Any:
    """Return the search of a configuration with changed settings; None keeps the current value.

    Raise UserError if a setting is unknown or invalid.
    """
    search, task = config.search, config.task.kind
    overrides = {name: value for name, value in changes.items() if value is not None}
    kinds = search_kinds(config)
    kind = overrides.get("kind", search.kind)
    if kind not in kinds:
        raise UserError(
            f"search.kind={kind}: not supported for a {task} model that outputs "
            f"{config.model.gives}; available: {', '.join(kinds)}"
        )
    if kind != search.kind:
        search = _with_limits(search, kinds[kind])
    for name in overrides:
        if name not in type(search).model_fields:
            known = [key for key in type(search).model_fields if key != "kind"]
            others = [key for key, one in kinds.items() if name in one.model_fields]
            raise UserError(
                f"{name}: unknown search setting of a {task} model; available: {', '.join(known)}",
                help=f"it is a setting of {_selector(others[0])}" if others else "",
            )
    try:
        return type(search).model_validate(search.model_dump() | overrides)
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:  # an invalid combination
            raise UserError(f"search: {first['ctx']['error']}") from error
        raise UserError(f"{first['loc'][0]}: {first['msg']}, found {first['input']!r}") from error


def _selector(kind: str) -> str:
    """Return the command-line option and the setting that select a kind of search."""
    return f"{'--sample, or ' * (kind == 'sample')}search.kind={kind}"


def search_kinds(config: Config) -> dict[str, Any]:
    """Return the kinds of search that the model supports, by name."""
    kinds: dict[str, Any] = kinds_of(type(config).model_fields["search"].annotation)
    return {name: kind for name, kind in kinds.items() if config.model.gives in kind.takes}


def _with_limits(search: Any, kind: Any) -> Any:
    """Return a search of another kind with the length and repetition limits of `search`."""
    names = ("min_length", "max_length", "no_repeat_ngram")
    limits = {name: getattr(search, name, None) for name in names}
    return kind(**{name: v for name, v in limits.items() if v and name in kind.model_fields})
