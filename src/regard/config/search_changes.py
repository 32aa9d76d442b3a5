"""The search of a trained model, with other settings where they are given."""

from typing import Any

from pydantic import ValidationError

from regard.config.load import Config
from regard.core.errors import UserError
from regard.core.options import kinds_of


def changed_search(config: Config, changes: dict[str, Any]) -> Any:
    """The search of a configuration with these settings; None leaves one as it is."""
    search, task = config.search, config.task.kind
    given = {name: value for name, value in changes.items() if value is not None}
    kinds = search_kinds(config)
    kind = given.get("kind", search.kind)
    if kind not in kinds:
        raise UserError(f"a {task} model has no search of kind {kind}")
    if kind != search.kind:
        search = _carried(search, kinds[kind])
    for name in given:
        if name not in type(search).model_fields:
            known = [key for key in type(search).model_fields if key != "kind"]
            others = [key for key, one in kinds.items() if name in one.model_fields]
            hint = f"; {others[0]} has it: {_chosen_by(others[0])}" if others else ""
            raise UserError(
                f"{name}: no setting of a {task} model's search, which has {', '.join(known)}{hint}"
            )
    try:
        return type(search).model_validate(search.model_dump() | given)
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:  # settings that do not fit together
            raise UserError(f"search: {first['ctx']['error']}") from error
        raise UserError(f"{first['loc'][0]}: {first['msg']}, {first['input']!r} given") from error


def _chosen_by(kind: str) -> str:
    """How a kind of search is asked for."""
    return f"{'--sample, or ' * (kind == 'sample')}search.kind={kind}"


def search_kinds(config: Config) -> dict[str, Any]:
    """Return the kinds of search that the task has, by their names."""
    return {**kinds_of(type(config).model_fields["search"].annotation)}


def _carried(search: Any, kind: Any) -> Any:
    """The search of another kind with the limits of this one."""
    names = ("min_length", "max_length", "no_repeat_ngram")
    limits = {name: getattr(search, name, None) for name in names}
    return kind(**{name: v for name, v in limits.items() if v and name in kind.model_fields})
