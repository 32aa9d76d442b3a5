"""Tiny models that the laws run over: transducers of every kind of encoder and decoder."""

from functools import cache

import pytest
import torch
from torch import nn

from regard.config.configs import TransduceConfig
from regard.config.defaults import fill_defaults
from regard.config.load import check_config, flatten
from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.core.options import Options
from regard.data.tensors.padded import Batch, Padded, pad
from regard.data.tensors.special import EOS
from regard.inputs.input import InputShape
from regard.models.encoder_decoder import EncoderDecoderOptions

from .unions import (
    SIDES,
    Tree,
    each_once,
    model_trees,
    name_of,
    plain_trees,
    sized,
    slot,
    with_objective,
)

WIDTHS = [(8, 12), (12, 12)]  # encoder, decoder; equal only where they must be
SOURCES = [[5, 6, 7, 8, EOS], [6, 5, EOS], [EOS], [8, 8, 5, EOS]]
TARGETS = [[5, 7, EOS], [6, 6, 5, 7, 5, EOS], [EOS], [7, 5, 6, EOS]]
SOURCE_SIZE, TARGET_SIZE = 9, 8  # the five special tokens, and four or three letters


def filled(tree: Tree) -> EncoderDecoderOptions:
    """The options of a tiny model with these settings."""
    last_error: UserError | None = None
    for widths in WIDTHS:
        model = sized(tree, EncoderDecoderOptions, **dict(zip(SIDES, widths, strict=True)))
        try:
            return fill_defaults(
                check_config(with_objective(model), "laws"), DataStats(4, 40, 9, False)
            )[0].model
        except UserError as error:
            last_error = error
    raise AssertionError(last_error)


def goes_stepwise(tree: Tree) -> bool:
    """Whether a model with these settings gives steps, which these laws are about."""
    return EncoderDecoderOptions.model_validate(tree).gives == "steps"


TREES = [tree for tree in model_trees(EncoderDecoderOptions) if goes_stepwise(tree)]
BOTH_RECURRENT = [t for t in TREES if {t[side]["kind"] for side in SIDES} == {"recurrent"}]
TREES.append(BOTH_RECURRENT[0] | {"embedding_width": 5})  # vectors narrower than layers
MODELS = [filled(tree) for tree in TREES]
NAMES = [name_of(tree, EncoderDecoderOptions) for tree in TREES]
SLOTS = ("kind", "cell", "cross", "input_feeding", "norm_position")


def _word(part: Options, slot: str) -> str:
    """The kind in a slot, or its plain value."""
    value = getattr(part, slot, "")
    return str(getattr(value, "kind", value))


# The first of each, with as many default settings as can be.
SOME = {"-".join(_word(m.decoder, slot) for slot in SLOTS): m for m in reversed(MODELS)}
SOME |= {m.encoder.kind + _word(m.encoder, "norm_position"): m for m in reversed(MODELS)}
FEW = len([tree for tree in plain_trees(EncoderDecoderOptions) if goes_stepwise(tree)])
# For laws that take long: without the models that mix choices.
few = pytest.mark.parametrize("options", MODELS[:FEW], ids=NAMES[:FEW])


def _past(model: EncoderDecoderOptions) -> tuple[str, ...]:
    """The choices that decide what a decoder keeps of earlier tokens."""
    slots = ("kind", "cell", "attention", "positions", "cross", "input_feeding")
    return tuple(_word(model.decoder, slot) for slot in slots)


PASTS = list({_past(model): number for number, model in reversed([*enumerate(MODELS)])}.values())
# For laws of what a decoder keeps: each of it once, with the first encoder.
each_past = pytest.mark.parametrize(
    "options", [MODELS[n] for n in PASTS], ids=[NAMES[n] for n in PASTS]
)


def _parts_once() -> list[int]:
    """Models in which each pair of kinds and each choice comes, on whichever side."""
    met: set[tuple[str, str]] = set()
    found = []
    for number, tree in enumerate(TREES):
        choices = {(key.partition(".")[2] or key, str(v)) for key, v in flatten(tree).items()}
        choices.add(("kinds", "-".join(tree[side]["kind"] for side in SIDES)))
        if not choices <= met:
            met |= choices
            found.append(number)
    return found


# For laws of files, which do not know the sides.
each_part = pytest.mark.parametrize(
    "options", [MODELS[n] for n in _parts_once()], ids=[NAMES[n] for n in _parts_once()]
)
TRAINING = [tree for part in slot(TransduceConfig, "training") for tree in each_once(part)]


def one_of_each() -> list[int]:
    """The first model of each encoder kind with each decoder kind."""
    first: dict[tuple[str, ...], int] = {}
    for number, tree in enumerate(TREES):
        first.setdefault(tuple(tree[side]["kind"] for side in SIDES), number)
    return list(first.values())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`options`: every tiny transducer; `pair`: one of each pair of kinds; `training`:
    optimizers and schedules."""
    marks = metafunc.definition.iter_markers("parametrize")
    given = [name for mark in marks for name in _names(mark.args[0])]
    if "options" in metafunc.fixturenames and "options" not in given:
        metafunc.parametrize("options", MODELS, ids=NAMES)
    if "pair" in metafunc.fixturenames:
        places = one_of_each()
        metafunc.parametrize(
            "pair",
            [MODELS[i] for i in places],
            ids=["-".join(TREES[i][side]["kind"] for side in SIDES) for i in places],
        )
    if "training" in metafunc.fixturenames:
        names = ["-".join(map(str, flatten(tree).values())) for tree in TRAINING]
        metafunc.parametrize("training", TRAINING, ids=names)


def _names(given: str | tuple[str, ...]) -> tuple[str, ...]:
    """The arguments that a test is parametrized by."""
    return (given,) if isinstance(given, str) else given


@cache
def tiny(options: EncoderDecoderOptions) -> nn.Module:
    """The model, with biases and norms that are not zeros and ones."""
    torch.manual_seed(3)
    with torch.inference_mode(False):  # on first use
        return _tiny(options)


def _tiny(options: EncoderDecoderOptions) -> nn.Module:
    model = options.build(InputShape("text", SOURCE_SIZE), TARGET_SIZE, shared=False).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn(parameter.shape)
    return model


@pytest.fixture
def model(options: EncoderDecoderOptions) -> nn.Module:
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


@pytest.fixture(params=SOME.values(), ids=SOME)
def some(request: pytest.FixtureRequest) -> nn.Module:
    """Each kind of encoder, and of decoder with its attention."""
    return tiny(request.param)
