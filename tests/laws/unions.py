"""Every kind there is, found in the unions: settings of tiny models that grow with the kinds.

A kind that joins a union is covered from that day on, and in it every setting that is a word, a
yes or no, or a part with kinds of its own: each kind of encoder meets each kind of decoder with
default settings, then each choice is made once against those defaults, then a sample of models
mixes all of it. So a new kind adds a few models, not one for each other kind.

REGARD_COVER=SEED: instead any two choices meet in at least one model, and the sample is another
one (`bench/cover.py`). What it finds goes into `FOUND`.
"""

import os
import random
from collections.abc import Callable
from functools import cache
from itertools import combinations, product
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from regard.config.configs import CONFIGS
from regard.config.load import flatten
from regard.core.options import Options, members
from regard.models.contracts import incompatibility
from regard.nn.kernels.kernel import KernelOptions

SIDES = ("encoder", "decoder")
SIZES = {"layers": 2, "width": 8, "heads": 2, "feedforward_width": 12, "dropout": 0.1, "window": 2}
FRONTEND = {"width": 6, "char_width": 11}

# Every choice is made in a transducer. Other models, which have the same encoders, share them.
SHARES = {
    "TaggerOptions": slice(1, None, 3),
    "PooledOptions": slice(2, None, 3),
    "MaskedOptions": slice(3, None, 3),
    "SpeechModelOptions": slice(4, None, 4),
    "CausalOptions": slice(1, None, 2),
}
# Parts that compute the same in encoders and decoders, and have laws of their own.
SAME_ON_BOTH_SIDES = ("norm", "norm_position", "activation")
SIDE_SHARES = {"encoder": slice(1, None, 2), "decoder": slice(2, None, 2)}
SAMPLE = 8  # models that mix all choices
COVER = int(os.environ.get("REGARD_COVER", "0"))

Tree = dict[str, Any]
FOUND: dict[str, list[Tree]] = {}  # by options class: with what the full cover failed once
Parts = tuple[type[Options], ...]
Met = set[tuple[tuple[str, int], ...]]


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


def is_list(annotation: Any) -> bool:
    """Whether a setting is a list."""
    return get_origin(annotation) is list or any(map(is_list, get_args(annotation)))


@cache
def choices(options: type[Options]) -> dict[str, list[Any]]:
    """The settings of a part that choose between kinds, with the values it takes; default first."""
    found: dict[str, list[Any]] = {}
    for name, field in options.model_fields.items():
        if is_list(field.annotation):  # of blocks, which have laws of their own (`parts`)
            continue
        parts = members(field.annotation)
        if parts:
            trees = [tree for part in parts for tree in _inner(part)]
            usual = getattr(field.default, "kind", None)
            found[name] = sorted(trees, key=lambda tree: tree.get("kind") != usual)
        elif words(field.annotation):
            found[name] = sorted(words(field.annotation), key=lambda word: _rank(word, field))
    return {name: [v for v in vs if takes(options, name, v)] for name, vs in found.items()}


def _inner(part: type[Options]) -> list[Tree]:
    """The settings of a part inside a model. Kernels have laws of their own (`parts`), so only the
    full cover has all of their choices in models."""
    found = variants(part)
    return found[:1] if issubclass(part, KernelOptions) and not COVER else found


def _rank(word: Any, field: FieldInfo) -> tuple[bool, bool]:
    """The default first; where there is none, a part that is omitted last."""
    return word != field.default, word == "none"


def takes(options: type[Options], name: str, value: Any) -> bool:
    """Whether a part accepts this value, as a decoder may reject a kernel that sees the future."""
    return accepts(options, {name: value})


def accepts(options: type[Options], tree: Tree) -> bool:
    """Whether nothing in these settings is an error."""
    try:
        options.model_validate(tree)
    except ValidationError:
        return False
    return True


def variants(options: type[Options]) -> list[Tree]:
    """Settings of a part: its defaults, then each choice once; in the full cover any two meet."""
    slots = choices(options)
    if COVER:
        return all_pairs(slots, set(), lambda tree: accepts(options, tree))
    return one_at_a_time(slots)


def each_once(options: type[Options]) -> list[Tree]:
    """Settings of a part in which each choice is made at least once: for those on their own."""
    slots = choices(options)
    rows = range(max(map(len, slots.values())))
    return [{name: values[i % len(values)] for name, values in slots.items()} for i in rows]


def one_at_a_time(slots: dict[str, list[Any]]) -> list[Tree]:
    """The first value of each slot together, then each other value alone among them."""
    usual = {name: values[0] for name, values in slots.items()}
    return [usual, *(usual | {name: v} for name, values in slots.items() for v in values[1:])]


def all_pairs(slots: dict[str, list[Any]], met: Met, fits: Callable[[Tree], bool]) -> list[Tree]:
    """Few rows, a value for each slot, in which any two values of two slots meet, if they fit.

    met: pairs that met before, which need not meet again; those of these rows are added.
    fits: whether a row is not an error.
    """
    names = sorted(slots)
    several = min(2, len(names))
    missing = {
        tuple(zip(some, places, strict=True))
        for some in combinations(names, several)
        for places in product(*(range(len(slots[name])) for name in some))
    } - met
    usual = dict.fromkeys(names, 0)
    conflicts: Met = set()
    rows: list[dict[str, int]] = []
    while missing:
        first = min(missing)
        row = _completed(dict(first), slots, missing, conflicts)
        if not fits(_chosen(row, slots)):
            pairs = combinations(sorted(row.items()), several)
            found = {two for two in pairs if not fits(_chosen(usual | dict(two), slots))}
            new = found - conflicts - {first}
            conflicts |= found
            missing -= found
            if new:
                continue
            row = usual | dict(first)  # three choices that do not fit, or the first two alone
            if first in found:
                continue
        done = set(combinations(sorted(row.items()), several))
        missing -= done
        met |= done
        rows.append(row)
    return [_chosen(row, slots) for row in rows]


def _completed(
    row: dict[str, int], slots: dict[str, list[Any]], missing: Met, conflicts: Met
) -> dict[str, int]:
    """A value for each slot, with as many missing pairs and as few conflicts as can be."""

    def gain(name: str, index: int) -> int:
        pairs = [tuple(sorted([(name, index), other])) for other in row.items()]
        return sum(two in missing for two in pairs) - len(slots) * sum(
            two in conflicts for two in pairs
        )

    for name in sorted(slots):
        if name not in row:
            row[name] = max(range(len(slots[name])), key=lambda i: gain(name, i))
    return row


def _chosen(row: dict[str, int], slots: dict[str, list[Any]]) -> Tree:
    """The values that a row chooses."""
    return {name: slots[name][index] for name, index in sorted(row.items())}


def model_trees(options: type[Options], reads: str = "text") -> list[Tree]:
    """Settings of models: `plain_trees`, then a sample that mixes all choices.

    reads: the kind of input.
    """
    return list(_model_trees(options, reads))


@cache
def _model_trees(options: type[Options], reads: str) -> list[Tree]:
    plain = plain_trees(options, reads)
    more = [*sampled_trees(options, reads), *FOUND.get(options.__name__, [])]
    return plain + [tree for tree in more if tree not in plain]


def plain_trees(options: type[Options], reads: str = "text") -> list[Tree]:
    """Every kind of encoder with every kind of decoder, and each choice once."""
    if COVER:
        return _paired(options, reads)
    rows: list[Tree] = []
    kinds = _kinds(options, reads)
    for parts in kinds:
        usual, *others = one_at_a_time(_slots(options, parts, reads))
        others = [row for row in others if _meets(_changed(usual, row), parts, kinds)]
        rows += [usual, *_packed(usual, others)]
    return [nested(row) for row in rows]


def _changed(usual: Tree, row: Tree) -> str:
    """The one slot in which a row differs."""
    (name,) = [name for name in row if row[name] != usual[name]]
    return name


def _packed(usual: Tree, rows: list[Tree]) -> list[Tree]:
    """Fewer rows: each activation of a side joins a row that changes another part of that side."""
    changed = [_changed(usual, row) for row in rows]
    packed, found = list(rows), []
    for name, row in zip(changed, rows, strict=True):
        side = name.partition(".")[0]
        hosts = [
            i
            for i, (other, host) in enumerate(zip(changed, packed, strict=True))
            if other.partition(".")[0] == side
            and isinstance(usual[other], dict)
            and host.get(name) == usual[name]
        ]
        if name.endswith(".activation") and hosts:
            packed[hosts[0]] = packed[hosts[0]] | {name: row[name]}
            found.append(row)
    return [row for row in packed if row not in found]


def _meets(name: str, parts: Parts, kinds: list[Parts]) -> bool:
    """Whether a choice is tried with these kinds: one of the model itself with the first ones,
    one of a side with its like on the other side, or with the first kind there."""
    side = name.partition(".")[0]
    if side not in SIDES or len(parts) == 1:
        return side in SIDES or parts == kinds[0]
    own = SIDES.index(side)
    partners = list(dict.fromkeys(kind_of(both[1 - own]) for both in kinds))
    like = kind_of(parts[own])
    return kind_of(parts[1 - own]) == (like if like in partners else partners[0])


def sampled_trees(options: type[Options], reads: str = "text") -> list[Tree]:
    """Models in which every choice is made at random, always the same ones."""
    chance = random.Random(COVER or 1)
    kinds = _kinds(options, reads)
    found: list[Tree] = []
    while len(found) < (SAMPLE if len(kinds[0]) > 1 else SAMPLE // 4):
        slots = _slots(options, chance.choice(kinds), reads)
        if not slots:
            break
        tree = nested({name: chance.choice(values) for name, values in slots.items()})
        if accepts(options, tree):
            found.append(tree)
    return found


def _kinds(options: type[Options], reads: str = "text") -> list[Parts]:
    """The kinds of encoder and decoder that can be built, each with each."""
    sides = [side for side in SIDES if side in options.model_fields]
    built = (
        [p for p in slot(options, side) if hasattr(p, "build") and frontends_of(options, p, reads)]
        for side in sides
    )
    return list(product(*built))


def frontends_of(options: type[Options], part: type[Options], reads: str) -> list[str]:
    """The kinds of frontends that a kind of encoder can follow. A decoder has none: any."""
    if "frontend" not in options.model_fields or not hasattr(part, "needs"):
        return ["any"]
    fitting = [one for one in slot(options, "frontend") if one.reads == reads]  # type: ignore[attr-defined]
    return [kind_of(one) for one in fitting if not incompatibility(one(), part())]  # type: ignore[arg-type]


def _slots(options: type[Options], parts: Parts, reads: str) -> dict[str, list[Any]]:
    """All choices of a model whose sides are of these kinds."""
    sides = [side for side in SIDES if side in options.model_fields]
    kinds = {side: {"kind": kind_of(part)} for side, part in zip(sides, parts, strict=True)}
    own = {name: values for name, values in choices(options).items() if name not in sides}
    if "ctc" in own:
        own["ctc"] = [value for value in own["ctc"] if accepts(options, kinds | {"ctc": value})]
    if "frontend" in own:
        fitting = frontends_of(options, parts[0], reads)
        own["frontend"] = [tree for tree in own["frontend"] if tree["kind"] in fitting]
    for side, part in zip(sides, parts, strict=True):
        for name, values in choices(part).items():
            own[f"{side}.{kind_of(part)}.{name}"] = _shared(options, side, name, values)
    if reads == "image" and not COVER:  # what does not read images is the same as for texts
        every = ("frontend", "encoder.cnn.", "decoder.recurrent.cross")
        own = {key: v if key.startswith(every) else v[:1] for key, v in own.items()}
    return own


def _shared(options: type[Options], side: str, name: str, values: list[Any]) -> list[Any]:
    """The default and those other choices of a slot that this kind of model tries."""
    if COVER or len(values) <= 3:
        return values
    if options.__name__ in SHARES:
        return [values[0], *values[SHARES[options.__name__]]]
    if name in SAME_ON_BOTH_SIDES:
        return [values[0], *values[SIDE_SHARES[side]]]
    return values


def _paired(options: type[Options], reads: str) -> list[Tree]:
    """Models in which any two choices meet."""
    met: Met = set()
    rows = [
        row
        for parts in _kinds(options, reads)
        for row in all_pairs(
            _slots(options, parts, reads), met, lambda row: accepts(options, nested(row))
        )
    ]
    return [nested(row) for row in rows]


def nested(row: Tree) -> Tree:
    """`encoder.window.activation` as the activation of the section encoder."""
    tree: Tree = {}
    for key, value in row.items():
        *section, name = key.split(".")
        (tree.setdefault(section[0], {}) if section else tree)[name] = value
    return tree


def sized(tree: Tree, options: type[Options], **widths: int) -> Tree:
    """The tree with tiny sizes; widths: of sides that are not all of the same width."""
    full = dict(tree)
    for side in {*SIDES, "frontend"} & set(tree):
        part = next(p for p in slot(options, side) if kind_of(p) == tree[side]["kind"])
        sizes = FRONTEND if side == "frontend" else SIZES
        sizes = sizes | ({"width": widths[side]} if side in widths else {})
        full[side] = {k: v for k, v in sizes.items() if k in part.model_fields} | tree[side]
    return full


def with_objective(model: Tree) -> Tree:
    """Sections with this model, and an objective that trains all of it."""
    joint = {"objective": {"ctc_weight": 0.3}} if model.get("ctc") else {}
    return {"model": model, **joint}


def name_of(tree: Tree, options: type[Options]) -> str:
    """The kinds, and what differs from their defaults: the name of a test."""
    usual = flatten(options().model_dump(mode="json"))
    for side in {*SIDES, "frontend"} & set(tree):
        part = next(p for p in slot(options, side) if kind_of(p) == tree[side]["kind"])
        usual |= flatten({side: part().model_dump(mode="json")})
    odd = [f"{key}={v}" for key, v in flatten(tree).items() if v != usual.get(key)]
    kinds = [part["kind"] for part in (tree, *map(tree.get, SIDES)) if part and "kind" in part]
    if read := tree.get("frontend"):  # named where there are several for an input
        kinds += [read["kind"]] if len(_alike(options, read["kind"])) > 1 else []
    return "-".join([*kinds, *odd])


def _alike(options: type[Options], kind: str) -> list[type[Options]]:
    """The frontends that read the same kind of input as this one."""
    every = slot(options, "frontend")
    reads = next(one.reads for one in every if kind_of(one) == kind)  # type: ignore[attr-defined]
    return [one for one in every if one.reads == reads]  # type: ignore[attr-defined]


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
