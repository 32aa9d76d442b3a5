"""Options: the frozen, typed settings of a part; unknown keys are refused."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, model_validator


class Options(BaseModel):
    """Settings of one part, checked when made, never changed afterwards.

    A slot that holds one of several kinds may be given as the name of a kind: `norm: rms` is
    `norm: {kind: rms}`. exports: of a part of a model the engines that compute it besides torch.
    """

    exports: ClassVar[frozenset[str] | None] = None
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _words_are_kinds(cls, tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        words = [key for key, value in tree.items() if isinstance(value, str) and key in slots(cls)]
        return tree | {key: {"kind": tree[key]} for key in words} if words else tree


@dataclass(frozen=True)
class Choice:
    """A setting that was chosen from the data, and why."""

    key: str
    value: Any
    why: str


@cache
def slots(options: type[BaseModel]) -> frozenset[str]:
    """The names of the fields that hold one of several kinds."""
    fields = options.model_fields.items()
    return frozenset(name for name, field in fields if kinds_of(field.annotation))


def parts(options: Options, path: str) -> Iterator[tuple[str, Any]]:
    """The options in all slots below these, each with its path."""
    for name in sorted(slots(type(options))):
        part = getattr(options, name)
        if isinstance(part, Options):
            yield f"{path}.{name}", part
            yield from parts(part, f"{path}.{name}")


def not_exported(options: Options, engine: str, path: str) -> list[str]:
    """The kinds below these options that an engine does not compute, each with its path."""
    found = parts(options, path)
    return [
        f"{where}.kind={part.kind}"
        for where, part in found
        if part.exports is not None and engine not in part.exports
    ]


def members(annotation: Any) -> list[type[BaseModel]]:
    """The options classes in the type of a field; none for a plain value."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [one for part in get_args(annotation) for one in members(part)]


def kinds_of(annotation: Any) -> dict[str, type[BaseModel]]:
    """By its name each kind that a field can hold."""
    models = members(annotation)
    return {m.model_fields["kind"].default: m for m in models if "kind" in m.model_fields}


def flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested sections as dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
