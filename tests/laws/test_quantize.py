"""Laws of int8 weights, over every model: only weights are rounded, and only by half a step.

Two laws of search and of states are run again here, over models in int8.
"""

import copy
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import regard
from regard.core.errors import UserError
from regard.data.tensors.padded import Batch, pad
from regard.exchange.export.int8_folder import export
from regard.inference.predictor import Predictor
from regard.inference.torch_engine import TorchEngine
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.nn.quantize import quantize, size_of
from regard.search import Beam, SearchRequest
from regard.storage.weights import save_weights
from regard.training.describe import describe
from regard.training.run import Run
from regard.training.start import start_run

from . import test_beam
from .conftest import SOURCES, tiny
from .test_state import test_steps_equal_one_pass  # noqa: F401
from .toys import TOYS, Case, built, cases, moved, one_of_each_kind, twice

KINDS = one_of_each_kind([case for toy in TOYS for case in cases(toy)])
COUNTED = [case for case in KINDS if "ngram" in case.kind]
TRAINED = [case for case in KINDS if case not in COUNTED]
# tables that stay as they are, as those of kernels, and the network of floater
KEPT = ("transitions", "positions.weight", "positions.state", "positions.out")
KEPT += ("frontend.positions", "encoder.positions")  # of patches and cells
KEPT += (".own", ".other", ".relation")  # of graphs
every = pytest.mark.parametrize("case", TRAINED, ids=lambda case: case.name)


@cache
def tiny_int8(options: EncoderDecoderOptions) -> nn.Module:
    return quantize(copy.deepcopy(tiny(options)))


@pytest.fixture
def model(options: EncoderDecoderOptions) -> nn.Module:
    """The tiny model of these options in int8: what the laws of other files are given here."""
    return tiny_int8(options)


def test_the_batch_is_invisible(pair: EncoderDecoderOptions) -> None:
    test_beam.test_the_batch_is_invisible(tiny_int8(pair))


def is_linear(model: nn.Module, name: str) -> bool:
    """Whether a weight belongs to a linear layer."""
    return isinstance(model.get_submodule(name.rpartition(".")[0]), nn.Linear)


def half_steps(model: nn.Module) -> dict[str, Tensor]:
    """Half a step of int8 for each row of each matrix, by the name of its weight."""
    return {
        name: (weight.abs().amax(1, keepdim=True) / 127 / 2).detach()
        for name, weight in model.named_parameters()
        if weight.dim() == 2 and len(weight) > 1
        if not name.endswith(KEPT) and ".kernel." not in name
        if not name.endswith("frontend.project.weight") or is_linear(model, name)  # of graphs
    }


@torch.no_grad()
def by_hand(model: nn.Module) -> nn.Module:
    """The model in fp32 with each number of each matrix moved to the nearest step."""
    twin, halves = copy.deepcopy(model).eval(), half_steps(model)
    for name, weight in twin.named_parameters():
        if name in halves:
            weight.copy_((weight / halves[name] / 2).round() * halves[name] * 2)
    return twin


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_it_is_the_model_with_rounded_weights(options: EncoderDecoderOptions, batch: Batch) -> None:
    """Nothing else is rounded: not what flows between layers."""
    close(tiny_int8(options)(batch).logits, by_hand(tiny(options))(batch).logits)


def test_logits_move_as_far_as_half_a_step_of_each_weight(
    pair: EncoderDecoderOptions, batch: Batch
) -> None:
    """To first order: the sum over weights of |d logit / d weight| times half its step."""
    whole, rounded = tiny(pair), tiny_int8(pair)
    before, after = whole(batch).logits, rounded(batch).logits.detach()
    halves, named = half_steps(whole), dict(whole.named_parameters())
    for place in ((0, 5), (4, 6)):
        slopes = torch.autograd.grad(before[place], [named[n] for n in halves], retain_graph=True)
        pairs = zip(slopes, halves.values(), strict=True)
        reach = sum((slope.abs() * half).sum() for slope, half in pairs)
        assert 0 < abs(before[place].detach() - after[place]) <= reach


def test_its_engine_steps_as_it_does(pair: EncoderDecoderOptions) -> None:
    """Also where the engine takes the weights out of the modules."""
    rounded, search = tiny_int8(pair), Beam(beam=3)
    request = SearchRequest(pad(SOURCES), torch.full((len(SOURCES),), 5), 2)
    there = TorchEngine(rounded).run(search, request)
    for one, other in zip(there, search.run(rounded, request), strict=True):
        assert [h.tokens for h in one] == [h.tokens for h in other]
        assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-5)


def loss(run: Run, model: nn.Module) -> float:
    """The loss of all examples; what is masked is drawn alike each time."""
    torch.manual_seed(7)
    return Predictor.of(run.task, run.config, model, run.folder).evaluate(run.dev, rows=4).loss


@every
def test_every_kind_of_model_is_supported(case: Case) -> None:
    run = built(case)
    rounded = quantize(copy.deepcopy(run.model))
    assert loss(run, rounded) == pytest.approx(loss(run, by_hand(run.model)), rel=1e-5, abs=1e-5)
    assert size_of(rounded) < size_of(run.model)


@pytest.mark.parametrize("case", COUNTED, ids=lambda case: case.name)
def test_a_model_without_matrices_is_an_error(case: Case) -> None:
    with pytest.raises(UserError, match="int8: this model has no weight matrices"):
        quantize(copy.deepcopy(built(case).model))


@every
def test_from_a_file_it_is_the_same(case: Case, tmp_path: Path) -> None:
    """Rounded in memory, while it is read, or before it was written: the same numbers."""
    run = moved(start_run(tmp_path / "run", case.config(), *twice(case)))
    describe(run, {})
    save_weights(run.model, run.folder / "model.safetensors")
    read = regard.load(run.folder, quantize="int8")
    facts = export(regard.load(run.folder).predictor_, tmp_path / "out" / "regard", "int8")
    for name in ("config.yaml", "vocabulary"):
        (run.folder / name).rename(tmp_path / "out" / name)
    states = [m.state_dict() for m in (quantize(run.model), read.model_)]
    states.append(regard.load(tmp_path / "out").model_.state_dict())
    for state in states[1:]:
        assert state.keys() == states[0].keys()
        assert [name for name in state if not torch.equal(state[name], states[0][name])] == []
    assert facts["quantize"] == "int8" and not read.model_.training


def test_it_cannot_be_trained(pair: EncoderDecoderOptions, batch: Batch) -> None:
    rounded = tiny_int8(pair)
    with pytest.raises(UserError, match="int8 weights cannot be trained"):
        copy.deepcopy(rounded).train()
    assert not any(parameter.requires_grad for parameter in rounded.parameters())
    assert not rounded(batch).logits.requires_grad


def test_elsewhere_than_on_a_cpu_it_is_an_error(pair: EncoderDecoderOptions) -> None:
    with pytest.raises(UserError, match="only supported on CPUs; the model is on meta"):
        quantize(copy.deepcopy(tiny(pair)).to("meta"))
