"""Laws of objectives: a loss is a sum, so it does not matter how examples are batched."""

from pathlib import Path

import pytest
import torch
from torch import nn

from regard.config.configs import TransduceConfig
from regard.config.load import check_config
from regard.data.reading.read import Pair
from regard.data.tensors.padded import Batch, Padded
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.objectives import Objective
from regard.training.loop import StepRecord, train
from regard.training.run import Run
from regard.training.start import start_run

from .conftest import FEW, MODELS, NAMES, one_of_each
from .unions import slot

PAIRS = [Pair("ab", "b", 1), Pair("bca", "abca", 2), Pair("c", "cc", 3), Pair("abcab", "bac", 4)]


def objectives() -> list[Objective]:
    """One of each kind for models that give steps; the others have laws in `test_parallel.py`."""
    kinds = slot(TransduceConfig, "objective")
    return [kind() for kind in kinds if "steps" in kind.takes]  # type: ignore[attr-defined]


def with_models(count: int) -> pytest.MarkDecorator:
    """The default objective of each of the first models, and each other one of a model of each
    pair of kinds."""
    usual, *others = objectives()
    both = [(number, usual) for number in range(count)]
    both += [(number, one) for one in others for number in one_of_each()]
    return pytest.mark.parametrize(
        ("options", "objective"),
        [(MODELS[number], one) for number, one in both],
        ids=[f"{NAMES[number]}-{one.kind}" for number, one in both],
    )


def joint(objective: Objective, model: nn.Module) -> tuple[Objective, list[nn.Parameter]]:
    """The objective, with CTC if it can and the model has that layer; and the weights it trains."""
    if model.ctc is not None and "ctc_weight" in type(objective).model_fields:
        objective = objective.model_copy(update={"ctc_weight": 0.3})
    is_joint = "frames" in objective.reads
    named = model.named_parameters()
    return objective, [weight for name, weight in named if is_joint or not name.startswith("ctc.")]


def rows(batch: Batch, some: list[int]) -> Batch:
    """These rows of a batch, padded as before."""
    source, target = (Padded(side.data[some], side.mask[some]) for side in batch[:2])
    return Batch(source, target)


@with_models(len(MODELS))
@torch.no_grad()
def test_the_loss_is_additive(model: nn.Module, batch: Batch, objective: Objective) -> None:
    objective, _ = joint(objective, model)
    whole = objective(model, batch)
    parts = [objective(model, rows(batch, some)) for some in ([0], [1], [2, 3])]
    assert float(whole.sum) == pytest.approx(sum(float(p.sum) for p in parts), rel=1e-5)
    assert whole.count == objective.count(batch) == sum(p.count for p in parts)
    for name, value in whole.parts.items():
        assert float(value) == pytest.approx(sum(float(p.parts[name]) for p in parts), rel=1e-5)


@with_models(FEW)
def test_the_gradient_is_additive(model: nn.Module, batch: Batch, objective: Objective) -> None:
    objective, weights = joint(objective, model)
    whole = torch.autograd.grad(objective(model, batch).sum, weights)
    parts = [
        torch.autograd.grad(objective(model, rows(batch, [row])).sum, weights) for row in range(4)
    ]
    for gradient, *some in zip(whole, *parts, strict=True):
        torch.testing.assert_close(sum(some), gradient, atol=2e-5, rtol=1e-4)


def one_update(
    folder: Path, options: EncoderDecoderOptions, training: dict
) -> tuple[Run, StepRecord]:
    """A run after its first update. eps = 1 keeps Adam from blowing up rounding errors."""
    quiet = options.model_dump(mode="json")
    for side in ("encoder", "decoder"):
        quiet[side]["dropout"] = 0.0
    fixed = {"steps": 1, "lr": 0.1, "schedule": {"kind": "constant", "warmup": 0}}
    fixed |= {"optimizer": {"kind": "adamw", "eps": 1.0}}
    tokens = {"source": {"tokenizer": "char"}, "target": {"tokenizer": "char"}}
    tree = {"model": quiet, "task": tokens, "training": fixed | training}
    run = start_run(folder, check_config(tree, "laws"), PAIRS, PAIRS)
    (record,) = train(run)
    return run, record


def test_four_small_batches_are_one_large(pair: EncoderDecoderOptions, tmp_path: Path) -> None:
    """Batches of unequal length, accumulated: the same update as all of them at once."""
    small, one = one_update(tmp_path, pair, {"batch_tokens": 1, "accumulation_steps": 4})
    large, other = one_update(tmp_path, pair, {"batch_tokens": 100, "accumulation_steps": 1})
    assert (small.epoch_batches, large.epoch_batches) == (4, 1)
    assert (one.tokens, one.examples, one.step, one.epoch) == (14, 4, 1, 1.0)
    assert (other.tokens, other.examples, other.step, other.epoch) == (14, 4, 1, 1.0)
    assert one.loss == pytest.approx(other.loss, abs=1e-6)
    assert one.norm == pytest.approx(other.norm, rel=1e-5)
    for here, there in zip(small.model.parameters(), large.model.parameters(), strict=True):
        torch.testing.assert_close(here, there, atol=1e-6, rtol=0)
