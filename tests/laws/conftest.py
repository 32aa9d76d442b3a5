"""Every kind there is, found in the unions, as tiny models that the laws run over.

A kind that joins a union is covered from that day on: encoders, decoders, and in them every
setting that is a word, a yes or no, or a part with kinds of its own. Trying all combinations
would take too long, so any two choices (in the encoder, in the decoder, or one in each) meet in
at least one model.
"""

from functools import cache
from itertools import combinations, product
from typing import Any, Literal, get_args, get_origin

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from regard.config import check_config, flatten
from regard.tasks.configs import TransduceConfig
from regard.data.batch import Batch, Padded, pad
from regard.data.vocabulary import EOS
from regard.errors import UserError
from regard.models.generator import GeneratorOptions
from regard.options import Options
from regard.presets import fill
from regard.tasks.base import Facts

SIDES = ("encoder", "decoder")
SIZES = {"layers": 2, "heads": 2, "feedforward": 12, "dropout": 0.1}
WIDTHS = [(8, 12), (12, 12)]  # encoder, decoder; equal only where they must be
SOURCES = [[5, 6, 7, 8, EOS], [6, 5, EOS], [EOS], [8, 8, 5, EOS]]
TARGETS = [[5, 7, EOS], [6, 6, 5, 7, 5, EOS], [EOS], [7, 5, 6, EOS]]
SOURCE_SIZE, TARGET_SIZE = 9, 8  # the five special symbols, and four or three letters

Tree = dict[str, Any]


def members(annotation: Any) -> list[type[Options]]:
    """The options classes in the type of a slot; none where it holds a plain value."""
    found = [annotation, *get_args(annotation)]
    return [m for m in found if isinstance(m, type) and issubclass(m, Options)]


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
    return all_pairs(choices(options))


def all_pairs(slots: dict[str, list[Any]]) -> list[Tree]:
    """Few rows, a value for each slot, in which any two values of two slots meet."""
    names = sorted(slots)
    several = min(2, len(names))
    missing = {
        tuple(zip(some, places, strict=True))
        for some in combinations(names, several)
        for places in product(*(range(len(slots[name])) for name in some))
    }
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
        missing -= set(combinations(sorted(row.items()), several))
        rows.append(row)
    return [{name: slots[name][row[name]] for name in names} for row in rows]


def model_trees() -> list[Tree]:
    """Settings of models: every encoder kind with every decoder kind that can be built."""
    own = {name: v for name, v in choices(GeneratorOptions).items() if name not in SIDES}
    built = ([part for part in parts_of(side) if hasattr(part, "build")] for side in SIDES)
    trees = []
    for parts in product(*built):
        slots = dict(own)
        for side, part in zip(SIDES, parts, strict=True):
            slots |= {f"{side}.{name}": values for name, values in choices(part).items()}
        trees += [nested(row) for row in all_pairs(slots)]
    return trees


def parts_of(side: str) -> list[type[Options]]:
    """Every kind of encoder, or of decoder; also one that stands for others, as auto."""
    return members(GeneratorOptions.model_fields[side].annotation)


def nested(row: Tree) -> Tree:
    """Dotted keys as sections."""
    tree: Tree = {}
    for key, value in row.items():
        section, _, name = key.rpartition(".")
        (tree.setdefault(section, {}) if section else tree)[name] = value
    return tree


def part_of(tree: Tree, side: str) -> type[Options]:
    """The options class that a side of the tree means."""
    return next(p for p in parts_of(side) if p.model_fields["kind"].default == tree[side]["kind"])


def filled(tree: Tree) -> GeneratorOptions:
    """The options of a tiny model with these settings."""
    refusal: UserError | None = None
    for widths in WIDTHS:
        sized = dict(tree)
        for side, width in zip(SIDES, widths, strict=True):
            known = part_of(tree, side).model_fields
            sizes = {k: v for k, v in {**SIZES, "width": width}.items() if k in known}
            sized[side] = sizes | tree[side]
        try:
            return fill(check_config({"model": sized}, "laws"), Facts(4, 40, 9, False))[0].model
        except UserError as error:
            refusal = error
    raise AssertionError(refusal)


def name_of(tree: Tree) -> str:
    """The two kinds, and what differs from their defaults: the name of a test."""
    usual = GeneratorOptions().model_dump(mode="json")
    usual |= {side: part_of(tree, side)().model_dump(mode="json") for side in SIDES}
    odd = {key: v for key, v in flatten(tree).items() if v != flatten(usual)[key]}
    return "-".join(
        [*(tree[side]["kind"] for side in SIDES), *(f"{k}={v}" for k, v in odd.items())]
    )


TREES = model_trees()
MODELS = [filled(tree) for tree in TREES]
NAMES = [name_of(tree) for tree in TREES]
SECTIONS = {
    name: [tree for part in members(field.annotation) for tree in variants(part)]
    for name, field in TransduceConfig.model_fields.items()
    if name != "model"
}


def one_of_each() -> list[int]:
    """The first model of each encoder kind with each decoder kind."""
    first: dict[tuple[str, ...], int] = {}
    for number, tree in enumerate(TREES):
        first.setdefault(tuple(tree[side]["kind"] for side in SIDES), number)
    return list(first.values())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`options`: every tiny model; `pair`: one of each pair of kinds; `kinds`: their names;
    `section`: the settings of all but models; `training`: optimisers and schedules."""
    if "options" in metafunc.fixturenames:
        metafunc.parametrize("options", MODELS, ids=NAMES)
    if "pair" in metafunc.fixturenames:
        places = one_of_each()
        metafunc.parametrize(
            "pair",
            [MODELS[i] for i in places],
            ids=["-".join(TREES[i][side]["kind"] for side in SIDES) for i in places],
        )
    if "kinds" in metafunc.fixturenames:
        pairs = product(*([p.model_fields["kind"].default for p in parts_of(s)] for s in SIDES))
        metafunc.parametrize("kinds", list(pairs), ids="-".join)
    if "section" in metafunc.fixturenames:
        rows = [(name, tree) for name, trees in SECTIONS.items() for tree in trees]
        metafunc.parametrize("section", rows, ids=[f"{n}-{i}" for i, (n, _) in enumerate(rows)])
    if "training" in metafunc.fixturenames:
        names = ["-".join(map(str, flatten(tree).values())) for tree in SECTIONS["training"]]
        metafunc.parametrize("training", SECTIONS["training"], ids=names)


@cache
def tiny(options: GeneratorOptions) -> nn.Module:
    """The model, with biases and norms that are not zeros and ones."""
    torch.manual_seed(3)
    model = options.build(SOURCE_SIZE, TARGET_SIZE, shared=False).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn(parameter.shape)
    return model


@pytest.fixture
def model(options: GeneratorOptions) -> nn.Module:
    """The tiny model of these options, for looking only: it is built once for all tests."""
    return tiny(options).eval()


@pytest.fixture
def source() -> Padded:
    """Four sources of lengths 5, 3, 1 and 4."""
    return pad(SOURCES)


@pytest.fixture
def batch() -> Batch:
    """The sources with targets of lengths 3, 6, 1 and 4."""
    return Batch(pad(SOURCES), pad(TARGETS))
