"""Every kind there is, found in the unions: settings in which any two choices meet.

A kind that joins a union is covered from that day on, and in it every setting that is a word, a
yes or no, or a part with kinds of its own. Trying all combinations would take too long, so any
two choices (in one part, or one in each of two parts) meet in at least one model.
"""

from collections.abc import Collection
from itertools import combinations, product
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError

from regard.config import flatten
from regard.options import Options
from regard.tasks.configs import CONFIGS

SIDES = ("encoder", "decoder")
SIZES = {"layers": 2, "width": 8, "heads": 2, "feedforward": 12, "dropout": 0.1, "reach": 2}
WORDS = {"width": 6, "letter_width": 11}

Tree = dict[str, Any]
Met = set[tuple[tuple[str, int], ...]]


def members(annotation: Any) -> list[type[Options]]:
    """The options classes in the type of a slot; none where it holds a plain value."""
    found = [annotation, *get_args(annotation)]
    return [m for m in found if isinstance(m, type) and issubclass(m, Options)]


def slot(options: type[Options], name: str) -> list[type[Options]]:
    """Every kind of a slot; also one that stands for others, as auto."""
    return members(options.model_fields[name].annotation)


def kind_of(part: type[Options]) -> str:
    """The name of a kind."""
    return part.model_fields["kind"].default


def words(annotation: Any) -> list[Any]:
    """The values of a setting that is one of a few words, or a yes or no."""
    if annotation is bool:
        return [False, True]
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [word for part in get_args(annotation) for word in words(part)]


def choices(options: type[Options]) -> dict[str, list[Any]]:
    """The settings of a part that choose between kinds, with the values it takes."""
    found: dict[str, list[Any]] = {}
    for name, field in options.model_fields.items():
        parts = members(field.annotation)
        if parts:
            found[name] = [tree for part in parts for tree in variants(part)]
        elif words(field.annotation):
            found[name] = words(field.annotation)
    return {name: [v for v in vs if takes(options, name, v)] for name, vs in found.items()}


def takes(options: type[Options], name: str, value: Any) -> bool:
    """Whether a part accepts this value, as a decoder may refuse a kernel that sees the future."""
    try:
        options.model_validate({name: value})
    except ValidationError:
        return False
    return True


def variants(options: type[Options]) -> list[Tree]:
    """Settings of a part in which any two choices meet."""
    return all_pairs(choices(options), set())


def each_once(options: type[Options]) -> list[Tree]:
    """Settings of a part in which each choice is made at least once: for those on their own."""
    slots = choices(options)
    rows = range(max(map(len, slots.values())))
    return [{name: values[i % len(values)] for name, values in slots.items()} for i in rows]


def all_pairs(slots: dict[str, list[Any]], met: Met) -> list[Tree]:
    """Few rows, a value for each slot, in which any two values of two slots meet.

    met: pairs that met before, which need not meet again; those of these rows are added.
    """
    names = sorted(slots)
    several = min(2, len(names))
    missing = {
        tuple(zip(some, places, strict=True))
        for some in combinations(names, several)
        for places in product(*(range(len(slots[name])) for name in some))
    } - met
    rows: list[dict[str, int]] = []
    while missing:
        row = dict(min(missing))
        for name in names:
            if name not in row:
                row[name] = max(
                    range(len(slots[name])),
                    key=lambda i: sum(
                        tuple(sorted([(name, i), other])) in missing for other in row.items()
                    ),
                )
        done = set(combinations(sorted(row.items()), several))
        missing -= done
        met |= done
        rows.append(row)
    return [{name: slots[name][row[name]] for name in names} for row in rows]


def model_trees(options: type[Options], unread: Collection[str] = ()) -> list[Tree]:
    """Settings of models: every kind of encoder with every kind of decoder that can be built.

    unread: settings that have no effect here.
    """
    sides = [side for side in SIDES if side in options.model_fields]
    own = {name: v for name, v in choices(options).items() if name not in (*sides, *unread)}
    built = ([part for part in slot(options, side) if hasattr(part, "build")] for side in sides)
    trees: list[Tree] = []
    met: Met = set()
    for parts in product(*built):
        slots = dict(own)
        for side, part in zip(sides, parts, strict=True):
            for name, values in choices(part).items():
                slots[f"{side}.{kind_of(part)}.{name}"] = values
        trees += [nested(row) for row in all_pairs(slots, met)]
    return trees


def nested(row: Tree) -> Tree:
    """`encoder.window.activation` as the activation of the section encoder."""
    tree: Tree = {}
    for key, value in row.items():
        *section, name = key.split(".")
        (tree.setdefault(section[0], {}) if section else tree)[name] = value
    return tree


def within_sides(trees: list[Tree]) -> list[int]:
    """The places of a few trees in which any two choices of one side meet, each choice of the
    model itself is made, and each kind of encoder meets each kind of decoder."""
    made = [_choices_within_sides(tree) for tree in trees]
    missing, found = set().union(*made), []
    while missing:
        found.append(max(range(len(trees)), key=lambda place: len(made[place] & missing)))
        missing -= made[found[-1]]
    return sorted(found)


def _choices_within_sides(tree: Tree) -> set[Any]:
    made: set[Any] = {tuple(part["kind"] for part in map(tree.get, SIDES) if part)}
    made |= {(name, str(value)) for name, value in tree.items() if name not in SIDES}
    for side in set(SIDES) & set(tree):
        own = [(side, tree[side]["kind"], key, str(v)) for key, v in flatten(tree[side]).items()]
        made |= {*own, *combinations(sorted(own), 2)}
    return made


def sized(tree: Tree, options: type[Options], **widths: int) -> Tree:
    """The tree with tiny sizes; widths: of sides that are not all of the same width."""
    full = dict(tree)
    if "words" in full:
        full["words"] = WORDS | full["words"]
    for side in set(SIDES) & set(tree):
        part = next(p for p in slot(options, side) if kind_of(p) == tree[side]["kind"])
        sizes = SIZES | ({"width": widths[side]} if side in widths else {})
        full[side] = {k: v for k, v in sizes.items() if k in part.model_fields} | tree[side]
    return full


def name_of(tree: Tree, options: type[Options]) -> str:
    """The kinds, and what differs from their defaults: the name of a test."""
    usual = flatten(options().model_dump(mode="json"))
    for side in set(SIDES) & set(tree):
        part = next(p for p in slot(options, side) if kind_of(p) == tree[side]["kind"])
        usual |= flatten({side: part().model_dump(mode="json")})
    odd = [f"{key}={v}" for key, v in flatten(tree).items() if v != usual[key]]
    kinds = [part["kind"] for part in (tree, *map(tree.get, SIDES)) if part and "kind" in part]
    return "-".join([*kinds, *odd])


def sections() -> list[tuple[str, str, Tree]]:
    """Task, section and settings: every choice in every config, but for models.

    Any two choices meet in the first task that has them, in the others each is made once.
    """
    found: list[tuple[str, str, Tree]] = []
    known: set[type[Options]] = set()
    for task, config in CONFIGS.items():
        for name in (name for name in config.model_fields if name != "model"):
            for part in slot(config, name):
                trees = each_once(part) if part in known else variants(part)
                found += [(task, name, tree) for tree in trees]
                known.add(part)
    return found
