"""Settings that follow from each other: kinds of model, objective and search that fit together.

A model gives one kind of output; objectives and searches take some kinds. If only some of the three
are set, the others are the first that fit.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

from pydantic import BaseModel

from regard.core.options import AutoSetting, kinds_of

Tree = dict[str, Any]
SECTIONS = ("model", "objective", "search")
# The settings that determine what a model gives, and what the other parts take.
KEYS = ("model.kind", "model.decoder.kind", "model.decoder.length", "objective.kind", "search.kind")


def implied_settings(owner: type[BaseModel], tree: Any) -> dict[str, Any]:
    """Return the settings, by dotted key, that follow from those in the tree.

    owner: the configuration class. Empty if the tree is consistent without them, or contradictory.
    """
    if not isinstance(tree, dict):
        return {}
    found = _first_fit(owner, tree)
    if found is None and "search" in tree:  # then the error names the search
        found = _first_fit(owner, {key: part for key, part in tree.items() if key != "search"})
    found = (found or {}) | _ctc_layer(owner, tree)
    return {k: v for k, v in found.items() if _get(tree, k) is None}


def _ctc_layer(owner: type[BaseModel], tree: Tree) -> dict[str, Any]:
    """Return the setting that adds an output layer for CTC, if the objective has a weight for it.

    A model that was built from options in Python has its own setting.
    """
    if isinstance(tree.get("model"), BaseModel):
        return {}
    fields = getattr(owner.model_fields["model"].annotation, "model_fields", {})
    weight = _get(tree, "objective.ctc_weight")
    return {"model.ctc": True} if "ctc" in fields and weight not in (None, 0, "0") else {}


def _first_fit(owner: type[BaseModel], tree: Tree) -> dict[str, Any] | None:
    """Return the kinds of the first model, objective and search that fit the tree, if any."""
    given = {name: _section(tree.get(name, {})) for name in SECTIONS}
    if not all(isinstance(part, dict | BaseModel) for part in given.values()):
        return None
    ways = [list(_ways(owner, name, given[name])) for name in SECTIONS]
    for (model, gives), (objective, fits), (search, runs) in product(*ways):
        if gives & fits and gives & runs:
            found = zip(SECTIONS, (model, objective, search), strict=True)
            return {f"{name}.{key}": value for name, part in found for key, value in part.items()}
    return None


def with_implied(tree: Any, settings: dict[str, Any]) -> Any:
    """Return the tree with these settings, by dotted key."""
    for key, value in settings.items():
        head, _, rest = key.partition(".")
        below = _section(tree.get(head, {}))
        tree = tree | {head: with_implied(below, {rest: value}) if rest else value}
    return tree


def forget(config: BaseModel, keys: Iterator[str] | dict[str, Any]) -> None:
    """Mark settings as not set by the user."""
    for key in keys:
        *path, last = key.split(".")
        part = config
        for name in path:
            part = getattr(part, name)
        part.model_fields_set.discard(last)


def implied_lines(config: Any) -> list[AutoSetting]:
    """Return the settings of a configuration that followed from others, to print."""
    kept: list[tuple[str, Any]] = []
    found: list[tuple[str, Any]] = []
    for key in KEYS:
        *path, last = key.split(".")
        part, usual = config, type(config)()
        for name in path:
            part, usual = getattr(part, name, None), getattr(usual, name, None)
        value = getattr(part, last, None)
        if value is None or value == getattr(usual, last, None):
            continue
        is_set = part is not None and last in part.model_fields_set
        (kept if is_set else found).append((key, value))
    others = " and ".join(f"{key}={value}" for key, value in kept) or "the other settings"
    return [AutoSetting(key, value, f"goes with {others}") for key, value in found]


def _ways(
    owner: type[BaseModel], name: str, given: Any
) -> Iterator[tuple[dict[str, Any], frozenset[str]]]:
    """Yield settings of a section that complete the given ones, and the outputs that they allow."""
    field = owner.model_fields[name]
    if isinstance(given, BaseModel):
        yield {}, _outputs(given)
        return
    kinds = kinds_of(field.annotation)
    if not kinds:
        for settings, gives in field.annotation.ways(given):  # type: ignore[union-attr]
            yield settings, frozenset({gives})
        return
    usual = getattr(field.default, "kind", None)
    for kind in sorted(kinds, key=lambda one: one != usual):  # the default first
        fits = set(given) <= set(kinds[kind].model_fields)
        if given.get("kind", kind) == kind and fits:
            # the default kind needs no setting, unless others are set that several kinds have
            yield {} if kind == usual and not given else {"kind": kind}, _outputs(kinds[kind])


def _outputs(part: Any) -> frozenset[str]:
    """Return the kinds of output that a part gives or takes."""
    takes: frozenset[str] | None = getattr(part, "takes", None)
    return frozenset({part.gives}) if takes is None else takes


def _section(value: Any) -> Any:
    """Return a section as a dict, if it is the name of a kind or not set."""
    return {"kind": value} if isinstance(value, str) else {} if value is None else value


def _get(tree: Any, key: str) -> Any:
    """Return a setting by dotted key; None if it is not set."""
    for name in key.split("."):
        tree = _section(tree)
        if not isinstance(tree, dict):
            return None
        tree = tree.get(name)
    return tree
