"""Laws of configurations, for every task and every kind of every slot in its config."""

from dataclasses import replace
from functools import reduce
from itertools import product
from typing import Any

import pytest
import torch
import yaml

from regard.config.configs import CONFIGS, Config
from regard.config.defaults import fill_defaults, propose_settings, with_settings
from regard.config.load import check_config, flatten
from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.core.options import Options
from regard.optim.training_options import Training

from .toys import TOYS, Case, cases
from .unions import SIDES, Tree, frontends_of, kind_of, sections, slot

CASES = [c for t in ("tag", "classify", "regress-vectors", "language-model") for c in cases(t)]
SECTIONS = sections()


def back(config: Config) -> Config:
    """Written and read again."""
    return check_config(yaml.safe_load(config.dump()), "laws")


@pytest.mark.parametrize("task", CONFIGS)
def test_defaults_come_back(task: str) -> None:
    config = CONFIGS[task]()
    assert back(config) == config == check_config({"task": {"kind": task}}, "laws")
    assert type(back(config)) is CONFIGS[task]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_model_s_settings_come_back(case: Case) -> None:
    config = case.config()
    assert back(config) == config and back(config).dump() == config.dump()
    given = flatten(case.model)
    assert given.items() <= flatten(config.model_dump(mode="json")["model"]).items()


@pytest.mark.parametrize(
    "section", SECTIONS, ids=[f"{task}-{name}-{i}" for i, (task, name, _) in enumerate(SECTIONS)]
)
def test_other_settings_come_back(section: tuple[str, str, Tree]) -> None:
    task, name, tree = section
    whole: Tree = {"task": {"kind": task}}
    whole[name] = whole.get(name, {}) | tree
    config = check_config(whole, "laws")
    assert back(config) == config
    assert flatten(tree).items() <= flatten(config.model_dump(mode="json")[name]).items()


def kinds_of(options: type[Options]) -> list[Tree]:
    """A model of each kind, with nothing else said."""
    sides = [side for side in SIDES if side in options.model_fields]
    own: Tree = {"kind": kind_of(options)} if "kind" in options.model_fields else {}
    names = product(*([kind_of(part) for part in slot(options, side)] for side in sides))
    return [
        own | {side: {"kind": kind} for side, kind in zip(sides, row, strict=True)} for row in names
    ]


def reads(options: type[Options], tree: Tree, source: str) -> bool:
    """Whether the encoder, if there is one, can read sources of this kind."""
    kind = tree.get("encoder", {}).get("kind")
    return all(
        frontends_of(options, part, source)
        for part in (slot(options, "encoder") if kind else [])
        if kind_of(part) == kind and hasattr(part, "build")
    )


DEFAULTS = [
    (name, tree)
    for name, toy in TOYS.items()
    for options in ([toy.only] if toy.only else slot(CONFIGS[toy.task], "model"))
    for tree in kinds_of(options)
    if reads(options, tree, toy.reads)
]


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize(
    ("toy", "model"),
    DEFAULTS,
    ids=["-".join([toy, *map(str, flatten(tree).values())]) for toy, tree in DEFAULTS],
)
def test_every_kind_builds_from_its_defaults(toy: str, model: Tree, large: bool) -> None:
    """With nothing said but the kinds, every open setting is filled, and said."""
    config = Case(toy, model, toy).config()
    task, options, _ = config.task.fit(TOYS[toy].pairs, config.model)
    config = config.model_copy(update={"task": options})
    stats = task.stats(task.corpus(TOYS[toy].pairs))
    if large:
        stats = replace(stats, examples=10**5, tokens=10**7, outputs=8000, subwords=True)
    full, auto_settings = fill_defaults(config, stats)
    before, after = (flatten(c.model_dump(mode="json")) for c in (config, full))
    open_values = [
        v for v in flatten(full.model.model_dump(mode="json")).values() if v in (None, "auto")
    ]
    assert not open_values
    training = full.training
    assert training.optimizer.kind != "auto"
    assert training.optimizer.kind == "closed_form" or None not in (
        training.lr,
        training.batch_tokens,
    )
    filled = {k: v for k, v in after.items() if k in before and before[k] != v}
    filled = {k: v for k, v in filled.items() if not isinstance(v, list)}  # blocks: not printed
    assert filled.items() <= {c.key: c.value for c in auto_settings}.items()
    kinds = {key.removesuffix(".kind"): value for key, value in after.items()}
    assert all(kinds[c.key.removesuffix(".kind")] == c.value and c.reason for c in auto_settings)
    assert fill_defaults(full, stats) == (full, [])
    assert back(full) == full
    with torch.device("meta" if large else "cpu"):
        task.build(full.model)


MODELS = [  # images and graphs have other statistics than those below
    (TOYS[toy].task, model) for toy, model in DEFAULTS if TOYS[toy].reads not in ("image", "graph")
]
OPTIMIZERS = [kind_of(part) for part in slot(Training, "optimizer")]
ROUNDS = [  # each model, and each optimizer with the first model of each task; others take turns
    {"task": {"kind": task}, "model": model, "training": {"optimizer": {"kind": kind}}}
    for number, (task, model) in enumerate(MODELS)
    for place, kind in enumerate(OPTIMIZERS)
    if place == number % len(OPTIMIZERS) or task not in [other for other, _ in MODELS[:number]]
]


@pytest.mark.parametrize("vectors", [0, 4], ids=["tokens", "vectors"])
def test_nothing_is_open_after_five_rounds(vectors: int) -> None:
    """Whatever kinds are given; and each choice has a reason and fills what was open."""
    stats = DataStats(1000, 9000, 50, False, vectors=vectors)
    for tree in ROUNDS:
        config = check_config(tree, "laws")
        for _ in range(5):
            choices = propose_settings(config, stats)
            keys = [choice.key for choice in choices]
            before = config.model_dump(mode="json")
            opened = [reduce(lambda part, key: part[key], key.split("."), before) for key in keys]
            assert len(set(keys)) == len(keys) and set(opened) <= {None, "auto"}
            assert all(choice.reason and choice.value is not None for choice in choices)
            config = with_settings(config, choices)
        assert not propose_settings(config, stats)
        assert not {None, "auto"} & set(flatten(config.model.model_dump(mode="json")).values())


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"model": {"kind": "masked"}}, ("masked", "masked")),
        ({"objective": {"kind": "masked"}}, ("masked", "masked")),
        ({}, ("causal", "next_token")),
        ({"model": {"kind": "ngram"}}, ("ngram", "next_token")),
    ],
    ids=["model", "objective", "neither", "ngram"],
)
def test_model_and_objective_of_a_language_model(settings: Any, told: tuple[str, str]) -> None:
    config = check_config({"task": {"kind": "language-model"}, **settings}, "laws")
    assert (config.model.kind, config.objective.kind) == told


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"model": {"kind": "ngram"}, "objective": {"kind": "masked"}},
            "objective masked: requires a model that outputs masked",
        ),
        (
            {
                "model": {"decoder": {"kind": "transformer"}},
                "task": {"kind": "language-model", "window_order": "sequential"},
            },
            "use shuffled",
        ),
        (
            {"task": {"kind": "language-model", "context_length": 8, "eval_overlap": 8}},
            "eval_overlap 8 must be less than context_length 8",
        ),
    ],
    ids=["ngram", "sequential", "overlap"],
)
def test_parts_that_do_not_fit_are_errors(settings: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_config({"task": {"kind": "language-model"}, **settings}, "laws")
