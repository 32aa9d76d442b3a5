"""Reading, merging and validation of configurations."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from regard.config.configs import CONFIGS, Config
from regard.config.implied import forget, implied_settings, with_implied
from regard.config.recipe_files import RECIPES, recipe_names
from regard.config.yaml_text import InvalidYaml, parse_yaml
from regard.core.errors import UserError
from regard.core.files import read_bytes, shorten
from regard.core.options import flatten, kinds_of, members
from regard.core.suggest import did_you_mean, suggest_names

Tree = dict[str, Any]
Part = type[BaseModel] | None
Kinds = dict[str, type[BaseModel]]
MAX_YAML = 64 * 1024  # bytes of a recipe or a configuration; they have a few thousand
RENAMED = {  # settings of earlier versions, by path suffix
    ".norm_place": "norm_position",
    "decoder.score": "cross",
    "task.lower": "source.lowercase",
    "task.words": "source.vocab_size",
    "model.words": "frontend",
    "model.hidden": "frontend.token_dropout",
}


def load_config(recipe: str | None = None, settings: list[str] | None = None) -> Config:
    """Return the configuration of a recipe (a name or a file) with `key=value` overrides."""
    tree = read_recipe(recipe) if recipe else {}
    for setting in settings or []:
        put(tree, setting)
    return check_config(tree, recipe or "settings")


def check_config(tree: Tree, where: str) -> Config:
    """Return nested settings as a configuration, or raise one UserError that lists all problems.

    where: origin of the settings, shown in messages.
    """
    owner = _task_config(tree, where)
    try:
        implied = implied_settings(owner, tree)
        config = owner.model_validate(_with_kinds(with_implied(tree, implied), owner))
        forget(config, implied)
        return config
    except ValidationError as error:
        lines = [_explain(e, owner) for e in error.errors()]
        raise UserError("\n".join([f"{where}: invalid configuration", *lines])) from error


def _task_config(tree: Tree, where: str) -> type[Config]:
    """Return the configuration class of the task (default: transduce)."""
    section = tree.get("task")
    kind = str(section.get("kind", "transduce")) if isinstance(section, dict) else "transduce"
    if kind not in CONFIGS:
        hint = did_you_mean(kind, CONFIGS)
        raise UserError(
            f"{where}: task: expected one of {', '.join(CONFIGS)}, found {kind!r}{hint}"
        )
    return CONFIGS[kind]


def read_recipe(recipe: str) -> Tree:
    """Return the settings of a recipe: a file, or the name of a built-in recipe."""
    path = Path(recipe)
    if not path.is_file():
        path = RECIPES / f"{recipe}.yaml"
    if not path.is_file():
        raise UserError(
            f"{recipe}: neither a file nor a recipe{suggest_names(recipe, recipe_names())}"
        )
    return read_yaml(path)


def read_yaml(path: Path) -> Tree:
    """Return the sections of a YAML file; raise UserError if it is invalid."""
    try:
        tree = parse_yaml(read_bytes(path, MAX_YAML).decode("utf-8")) or {}
    except InvalidYaml as error:
        raise UserError(f"{path}{error}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: invalid YAML: {error}") from error
    except OSError as error:
        raise UserError(f"{path}: cannot read: {error.strerror or error}") from error
    if not isinstance(tree, dict):
        found = shorten(tree)
        raise UserError(f"{path}: expected sections (task, model, training, ...), found {found}")
    return tree


def put(tree: Tree, setting: str) -> None:
    """Set `a.b=value` in the tree; the value is parsed as YAML."""
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise UserError(f"--set {setting}: expected KEY=VALUE, e.g. training.lr=3e-4")
    *path, last = key.strip().split(".")
    for part in path:
        branch = tree.setdefault(part, {})
        if isinstance(branch, str):  # a slot given as the name of a kind
            branch = tree[part] = {"kind": branch}
        if not isinstance(branch, dict):
            raise UserError(f"--set {setting}: {part} is a value, not a section")
        tree = branch
    try:
        tree[last] = parse_yaml(text)
    except InvalidYaml as error:
        raise UserError(f"--set {setting}{error}") from error


def changed(config: Config) -> dict[str, list[Any]]:
    """Return the settings that differ from the defaults, as {dotted key: [default, value]}."""
    current, default = (
        flatten(c.model_dump(mode="json")) for c in (config, type(config).model_validate({}))
    )
    return {
        k: [default.get(k), v] for k, v in current.items() if k not in default or default[k] != v
    }


def user_settings(config: Config) -> frozenset[str]:
    """Return the dotted keys of the settings that the recipe or the user set.

    config: as loaded, before automatic settings are filled in.
    """
    return frozenset(flatten(config.model_dump(mode="json", exclude_unset=True)))


def _with_kinds(tree: Any, owner: type[BaseModel]) -> Any:
    """Return the tree with a `kind` in each section without one.

    The added kind is the default or, if the default lacks one of the settings, the only kind that
    has all of them. Kinds for special inputs count only if no other has them. If several frontends
    of the same input have them, it is the first one.
    """
    if not isinstance(tree, dict):
        return tree
    out = dict(tree)
    for key, value in tree.items():
        field = owner.model_fields.get(key)
        if field is None or not isinstance(value, dict):
            continue
        part, kinds = _slot(field.annotation)
        if kinds:
            fitting = [k for k, model in kinds.items() if _has(model, value)]
            default = getattr(field.default, "kind", None)
            fitting = [k for k in fitting if not getattr(kinds[k], "is_special", False)] or fitting
            inputs = {getattr(kinds[k], "reads", k) for k in fitting}
            only = fitting[0] if len(inputs) == 1 and default not in fitting else default
            value = value if only is None else {"kind": only, **value}
            part = kinds.get(str(value.get("kind")), part)
        out[key] = _with_kinds(value, part) if part else value
    return out


def _has(model: type[BaseModel], tree: Tree) -> bool:
    """Return whether the options class has all settings of the tree, also the nested ones."""
    for key, value in tree.items():
        if key not in model.model_fields:
            return False
        part, kinds = _slot(model.model_fields[key].annotation)
        if part and not kinds and isinstance(value, dict) and not _has(part, value):
            return False
    return True


def _explain(error: Any, config: type[BaseModel]) -> str:
    """Return a pydantic error as a readable line."""
    path, owner, kinds = _locate(error["loc"], config)
    name = ".".join(path)
    if error["type"] == "extra_forbidden":
        renamed = [now for old, now in RENAMED.items() if name.endswith(old)]
        why = f"was renamed to {renamed[0]}" if renamed else _unknown(path[-1], owner, kinds)
        return f"  {name}: {why}"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "union_tag_not_found":
        return f"  {name}: expected a kind; set {name}.kind to one of {', '.join(kinds)}"
    if error["type"] == "union_tag_invalid":
        context = error["ctx"]
        found, fitting = context["tag"], _fitting(path[-1], kinds)
        hint, expected = did_you_mean(found, fitting), ", ".join(map(repr, fitting))
        if having := _kinds_that_allow(found, error["loc"], config):
            where = ".".join(path[:-1])
            return (
                f"  {name}: {path[-1]} {found} is for {' and '.join(having)} {path[-2]}s only; use "
                f"{where}.kind={having[0]}, or {name} one of {expected}"
            )
        return f"  {name}.kind: expected one of {expected}, found {found!r}{hint}"
    value = error.get("input")
    found = f", found {shorten(value)}" if not isinstance(value, dict | BaseModel) else ""
    return f"  {name}: {message}{found}" if name else f"  {message}"


def _fitting(slot: str, kinds: Kinds) -> list[str]:
    """Return the kinds of a slot; attention to another sequence needs kernels that support it."""
    return [
        name
        for name, kind in kinds.items()
        if slot != "cross" or not hasattr(kind, "supports") or kind.supports.cross
    ]


def _kinds_that_allow(tag: str, loc: tuple[Any, ...], config: type[BaseModel]) -> list[str]:
    """Return the other kinds of the options at a location whose slot of this name has this kind."""
    *above, slot = loc
    _, _, kinds = _locate(tuple(above), config)
    fields = {kind: model.model_fields.get(slot) for kind, model in kinds.items()}
    return [kind for kind, field in fields.items() if field and tag in kinds_of(field.annotation)]


def _unknown(key: str, owner: Part, kinds: Kinds) -> str:
    """Return why a key is unknown: another kind has it, or it is misspelled."""
    having = [kind for kind, model in kinds.items() if key in model.model_fields]
    if having:
        return f"not available for this kind; only for kind={' and kind='.join(having)}"
    known = list(owner.model_fields) if owner else []
    others = [name for model in kinds.values() for name in model.model_fields]
    hint = did_you_mean(key, [*known, *others], f"; available: {', '.join(known)}")
    return f"unknown setting{hint}"


def _locate(loc: tuple[Any, ...], config: type[BaseModel]) -> tuple[list[str], Part, Kinds]:
    """Return the setting names in the location of a pydantic error, without names of kinds.

    Also return the options class at this location and the kinds that it can hold.
    """
    path: list[str] = []
    owner: Part = config
    kinds: Kinds = {}
    is_kind = False  # whether the last part was a kind; a setting may have the same name (momentum)
    for part in loc:
        if part in kinds and not is_kind and part not in (owner.model_fields if owner else {}):
            owner, is_kind = kinds[part], True
            continue
        is_kind = False
        path.append(str(part))
        field = owner.model_fields.get(part) if owner else None
        if field is not None:
            owner, kinds = _slot(field.annotation)
    return path, owner, kinds


def _slot(annotation: Any) -> tuple[Part, Kinds]:
    """Return the options class of a field (None if it has several) and its kinds by name."""
    models = members(annotation)
    return (models[0] if len(models) == 1 else None), kinds_of(annotation)
