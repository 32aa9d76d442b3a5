"""Options: the frozen, typed settings of a part; unknown keys are refused."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, model_validator

from regard.core.data_stats import DataStats


@dataclass(frozen=True)
class Choice:
    """A setting that was chosen from the data, and why."""

    told: ClassVar[bool] = True  # whether the user is told
    key: str
    value: Any
    why: str


class Consequence(Choice):
    """A setting that follows from others, so that nobody needs to be told."""

    told: ClassVar[bool] = False


class Options(BaseModel):
    """Settings of one part, checked when made, never changed afterwards.

    A slot that holds one of several kinds may be given as the name of a kind: `norm: rms` is
    `norm: {kind: rms}`. exports: of a part of a model the engines that compute it besides torch;
    is_auto: whether it stands for a kind that is yet to be chosen.
    """

    exports: ClassVar[frozenset[str] | None] = None
    is_auto: ClassVar[bool] = False
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _words_are_kinds(cls, tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        words = [key for key, value in tree.items() if isinstance(value, str) and key in slots(cls)]
        return tree | {key: {"kind": tree[key]} for key in words} if words else tree

    def propose(self, stats: DataStats, config: Any) -> Iterator[Choice]:
        """Propose values for open settings of its own, once those they depend on are filled.

        The key of a choice is relative to these options; config: the configuration they are in.
        """
        yield from ()

    def choices(self, why: str, **values: Any) -> Iterator[Choice]:
        """Propose these values for the settings among them that are open."""
        for name, value in values.items():
            if getattr(self, name) is None:
                yield Choice(name, value, why)


@cache
def slots(options: type[BaseModel]) -> frozenset[str]:
    """The names of the fields that hold one of several kinds."""
    fields = options.model_fields.items()
    return frozenset(name for name, field in fields if kinds_of(field.annotation))


def parts(options: Options, path: str = "") -> Iterator[tuple[str, Any]]:
    """All options below these, each with its path, in the order of the settings."""
    for name in type(options).model_fields:
        part = getattr(options, name)
        if isinstance(part, Options):
            below = f"{path}.{name}".removeprefix(".")
            yield below, part
            yield from parts(part, below)


def not_exported(options: Options, engine: str, path: str) -> list[str]:
    """The kinds below these options that an engine does not compute, each with its path."""
    return [
        f"{where}.kind={part.kind}"
        for where, part in sorted(parts(options, path), key=lambda found: found[0])
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
