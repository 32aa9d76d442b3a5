"""Laws of optimizers and initializations: with nothing said but the kind, a model learns."""

import random

import pytest

from regard.config.load import check_config
from regard.data.reading.read import Pair
from regard.optim.init import Init
from regard.optim.optimizers import Optimizer
from regard.training.loop import train
from regard.training.run import Run
from regard.training.start import start_run

from .toys import NOWHERE
from .unions import Tree, kind_of, members

OPTIMIZERS = [kind_of(part) for part in members(Optimizer.__origin__)]
INITS = [kind_of(part) for part in members(Init.__origin__)]
SIZES = {"width": 32, "layers": 1, "dropout": 0.0}
TRANSFORMER = {"kind": "transformer", "heads": 2, "feedforward_width": 32, **SIZES}


def begun(training: Tree, encoder: Tree) -> Run:
    """A run that learns whether a word has a certain letter."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefgh", k=draw.randint(1, 12))) for _ in range(200)]
    pairs = [Pair(word, (str("c" in word),), line) for line, word in enumerate(words, 1)]
    model = {"encoder": encoder, "pooling": "max"}
    tree = {"task": {"kind": "classify"}, "model": model, "training": {"steps": 200} | training}
    return start_run(NOWHERE, check_config(tree, "laws"), pairs, pairs[:2])


def test_all_kinds_are_there() -> None:
    named = {"sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "adamw", "adafactor"}
    assert {*named, "muon"} <= set(OPTIMIZERS) and len(INITS) > 8


@pytest.mark.parametrize(
    "kind", [kind for kind in OPTIMIZERS if kind not in ("auto", "closed_form")]
)
def test_an_optimiser_learns_at_its_own_rate(kind: str) -> None:
    """The rate is left open; the loss falls to less than a tenth."""
    run = begun({"optimizer": {"kind": kind}}, {"kind": "window", **SIZES})
    losses = [record.loss for record in train(run)]
    assert sum(losses[-10:]) < 0.1 * sum(losses[:10])


@pytest.mark.parametrize("kind", INITS)
def test_an_initialization_learns(kind: str) -> None:
    run = begun({"init": {"kind": kind}, "lr": 0.01, "steps": 100}, TRANSFORMER)
    losses = [record.loss for record in train(run)]
    assert sum(losses[-10:]) < 0.1 * sum(losses[:10])
