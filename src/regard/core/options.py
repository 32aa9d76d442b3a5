"""Options: the frozen, typed settings of a component; unknown keys are errors."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, model_validator

from regard.core.data_stats import DataStats


@dataclass(frozen=True)
class AutoSetting:
    """A setting that was chosen automatically, with the reason."""

    is_printed: ClassVar[bool] = True
    key: str
    value: Any
    reason: str


class DerivedSetting(AutoSetting):
    """A setting that follows from other settings and is not printed."""

    is_printed: ClassVar[bool] = False


class Options(BaseModel):
    """Settings of one component, validated on creation and immutable.

    A slot is a field that holds one of several options classes, which differ in `kind`. It also
    accepts the name of a kind: `norm: rms` means `norm: {kind: rms}`.
    exports: engines other than torch that can run this component (None: no restriction).
    is_auto: whether this kind is a placeholder, to be replaced by an automatic choice.
    is_special: whether this kind is for special inputs, such as graphs. A setting that it shares
    with one other kind chooses the other.
    """

    exports: ClassVar[frozenset[str] | None] = None
    is_auto: ClassVar[bool] = False
    is_special: ClassVar[bool] = False
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _names_to_kinds(cls, tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        names = [key for key, value in tree.items() if isinstance(value, str) and key in slots(cls)]
        return tree | {key: {"kind": tree[key]} for key in names} if names else tree

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        """Yield values for unset settings, as soon as the settings they depend on are set.

        Keys are relative to this component. config: the full configuration.
        """
        yield from ()

    def not_exported(self, engine: str) -> list[str]:
        """Return the settings of this component, as `name=value`, that an engine lacks."""
        return []

    def auto_settings(self, reason: str, **values: Any) -> Iterator[AutoSetting]:
        """Yield a proposal for each of these settings that is unset."""
        for name, value in values.items():
            if getattr(self, name) is None:
                yield AutoSetting(name, value, reason)


@cache
def slots(options: type[BaseModel]) -> frozenset[str]:
    """Return the names of the fields that hold one of several kinds."""
    fields = options.model_fields.items()
    return frozenset(name for name, field in fields if kinds_of(field.annotation))


def parts(options: Options, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted path and the value of all nested options, in the order of the fields."""
    for name in type(options).model_fields:
        part = getattr(options, name)
        if isinstance(part, Options):
            below = f"{path}.{name}".removeprefix(".")
            yield below, part
            yield from parts(part, below)


def not_exported(options: Options, engine: str, path: str) -> list[str]:
    """Return the nested kinds and settings that an engine does not support, as `path=value`."""
    found = []
    for where, part in sorted(parts(options, path), key=lambda item: item[0]):
        if part.exports is not None and engine not in part.exports:
            found.append(f"{where}.kind={part.kind}")
        found += [f"{where}.{setting}" for setting in part.not_exported(engine)]
    return found


def members(annotation: Any) -> list[type[BaseModel]]:
    """Return the options classes in the type of a field (none for a plain value)."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [one for part in get_args(annotation) for one in members(part)]


def kinds_of(annotation: Any) -> dict[str, type[BaseModel]]:
    """Return the kinds that a field can hold, by name."""
    models = members(annotation)
    return {m.model_fields["kind"].default: m for m in models if "kind" in m.model_fields}


def allows(options: type[BaseModel], settings: dict[str, Any]) -> bool:
    """Return whether the kinds that these settings choose are among those of the options."""
    for name, value in settings.items():
        kind = value.get("kind") if isinstance(value, dict) else value
        kinds = kinds_of(options.model_fields[name].annotation)
        if kinds and isinstance(kind, str) and kind not in kinds:
            return False
    return True


def flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested sections as a flat dict with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
