"""Laws of models with parallel decoders, or without a decoder: fillers and frames.

Every kind of encoder with every kind of such a decoder, and each choice once; `test_configs.py`
covers their settings.
"""

from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import regard
from regard.config.configs import TransduceConfig
from regard.config.defaults import fill_defaults
from regard.config.load import check_config, flatten
from regard.core.data_stats import DataStats
from regard.data.reading.read import Pair
from regard.data.tensors.padded import Batch, Padded, pad
from regard.inputs.input import InputShape
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.nn.fast import fast
from regard.nn.quantize import quantize
from regard.search import SearchRequest
from regard.storage.weights import save_weights
from regard.training.checkpoint import save_checkpoint
from regard.training.describe import describe
from regard.training.loop import train
from regard.training.shards import backward
from regard.training.start import start_run

from .conftest import SOURCE_SIZE, SOURCES, TARGET_SIZE, TARGETS, goes_stepwise
from .toys import begin, check_same, in_a_new_process, predictor
from .unions import SIDES, Tree, model_trees, name_of, sized, slot

TREES = [tree for tree in model_trees(EncoderDecoderOptions) if not goes_stepwise(tree)]
NAMES = [name_of(tree, EncoderDecoderOptions) for tree in TREES]
FIT = [[5, 7, 3], [6, 6, 3], [3], [7, 5, 6, 3]]  # targets that fit into the frames of SOURCES
EXTRA = [1, 2]  # more padding than needed
SEARCHES: list[Tree] = [
    tree
    for part in slot(TransduceConfig, "search")
    if not {"steps"} & part.takes  # type: ignore[attr-defined]
    for tree in ({"kind": part.model_fields["kind"].default},)
]
MORE = {"refine": [{"passes": 1, "lengths": 1}, {"passes": 3, "lengths": 4}], "ctc": [{"beam": 4}]}
PAIRS = [
    Pair(word, word[::-1], line)
    for line, word in enumerate(["abc", "ba", "cab", "b", "ccab", "acbca", "bb", "cacb", "a"], 1)
]
TOKENS = {"source": {"tokenizer": "char"}, "target": {"tokenizer": "char"}}


@cache
def config_of(number: int) -> TransduceConfig:
    """A complete configuration with a tiny model."""
    model = sized(TREES[number], EncoderDecoderOptions, **dict(zip(SIDES, (8, 12), strict=True)))
    for widths in ((8, 12), (12, 12)):
        model = sized(TREES[number], EncoderDecoderOptions, **dict(zip(SIDES, widths, strict=True)))
        try:
            stats = DataStats(4, 40, 9, False, longest_target=6, length_change=3)
            return fill_defaults(check_config({"model": model}, "laws"), stats)[0]
        except regard.UserError:
            continue
    raise AssertionError(TREES[number])


@cache
def tiny(number: int, double: bool = False) -> nn.Module:
    """The model, with weights that are not zeros and ones."""
    torch.manual_seed(3)
    with torch.inference_mode(False):
        model = config_of(number).model.build(InputShape("text", SOURCE_SIZE), TARGET_SIZE, False)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.2 * torch.randn(parameter.shape)
    return (model.double() if double else model).eval()


def searches(config: TransduceConfig) -> list[Any]:
    """The searches of a model, with several settings each."""
    kind = config.search.kind
    usual = config.search
    return [usual, *(usual.model_copy(update=tree) for tree in MORE[kind])]


def one_of_each() -> list[int]:
    """The first model of each kind of output and decoder, for laws that train."""
    first: dict[tuple[str, ...], int] = {}
    for number in range(len(TREES)):
        model = config_of(number).model
        length = getattr(model.decoder, "length", "")
        first.setdefault((model.encoder.kind, model.decoder.kind, length), number)
    return list(first.values())


every = pytest.mark.parametrize("number", range(len(TREES)), ids=NAMES)
some = pytest.mark.parametrize("number", one_of_each(), ids=[NAMES[n] for n in one_of_each()])


def batch_of(rows: list[int], targets: list[list[int]] = FIT, padding: int = 0) -> Batch:
    """These rows as a batch, with more padding."""
    sides = [pad([side[row] for row in rows]) for side in (SOURCES, targets)]
    return Batch(
        *(
            Padded(
                nn.functional.pad(one.data, (0, padding)), nn.functional.pad(one.mask, (0, padding))
            )
            for one in sides
        )
    )


@every
@torch.no_grad()
def test_no_search_depends_on_its_batch(number: int) -> None:
    """Alone, in another order, with more padding, and by the fast path: the same outputs."""
    model, limits = tiny(number, double=True), torch.tensor([4, 6, 2, 7])
    for search in searches(config_of(number)):
        whole = search.run(model, SearchRequest(batch_of([0, 1, 2, 3]).source, limits, nbest=2))
        for rows, padding in (([0], 0), ([1], 2), ([2], 1), ([3, 0, 1], 3)):
            request = SearchRequest(batch_of(rows, padding=padding).source, limits[rows], nbest=2)
            for stepper in (model, fast(model)):
                for row, found in zip(rows, search.run(stepper, request), strict=True):
                    assert [one.tokens for one in found] == [one.tokens for one in whole[row]]
                    for one, other in zip(found, whole[row], strict=True):
                        assert one.score == pytest.approx(other.score, abs=1e-4)
                        assert one.token_logprobs == pytest.approx(other.token_logprobs, abs=1e-4)
                        assert one.truncated == other.truncated
                        assert len(one.token_logprobs) == len(one.tokens) + 1


@every
def test_the_loss_and_its_gradient_are_additive(number: int) -> None:
    """The loss of a batch is the sum of the losses of its rows, whatever their padding."""
    model, objective = tiny(number, double=True), config_of(number).objective
    weights = list(model.parameters())

    def of(batch: Batch) -> tuple[Any, Any]:
        loss = objective(model, objective.prepare(model, batch))
        return loss, torch.autograd.grad(loss.sum, weights, allow_unused=True)

    whole, gradients = of(batch_of([0, 1, 2, 3]))
    assert whole.count == objective.count(objective.prepare(model, batch_of([0, 1, 2, 3])))
    parts = [of(batch_of(rows, padding=n)) for n, rows in enumerate(([0], [1], [2, 3]))]
    assert float(whole.sum.detach()) == pytest.approx(
        sum(float(p.sum.detach()) for p, _ in parts), rel=1e-6
    )
    assert whole.count == sum(p.count for p, _ in parts)
    for name, value in whole.parts.items():
        assert float(value) == pytest.approx(sum(float(p.parts[name]) for p, _ in parts), rel=1e-6)
    for gradient, *each in zip(gradients, *(found for _, found in parts), strict=True):
        if gradient is not None:
            torch.testing.assert_close(sum(each), gradient, atol=1e-5, rtol=1e-4)


@some
def test_every_weight_learns(number: int) -> None:
    """But those that only choose the length, if the target has another."""
    model, objective = tiny(number), config_of(number).objective
    model.train()
    batch = batch_of([0, 1, 2, 3], TARGETS if config_of(number).model.gives == "fill" else FIT)
    loss = objective(model, objective.prepare(model, batch))
    gradients = torch.autograd.grad(loss.sum, list(model.parameters()), allow_unused=True)
    model.eval()
    names = [name for name, _ in model.named_parameters()]
    unused = [n for n, g in zip(names, gradients, strict=True) if g is None or not g.any()]
    assert not [name for name in unused if not name.endswith(("bias", "project.bias"))], unused
    assert loss.sum.isfinite()


@some
def test_two_shards_are_one(number: int) -> None:
    """Threads that divide a batch give the loss and the gradient of one."""
    model, objective = tiny(number), config_of(number).objective
    batch = objective.prepare(model, batch_of([0, 1, 2, 3] * 4))
    found = []
    for threads in (1, 2):
        model.zero_grad()
        loss = backward(model, objective, batch, 7.0, threads)
        gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        found.append((float(loss.sum), gradients))
    model.zero_grad()
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
    for one, other in zip(found[0][1], found[1][1], strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)


def run_config(number: int, **sections: Tree) -> TransduceConfig:
    """A configuration for training on PAIRS."""
    model = config_of(number).model.model_dump(mode="json")
    return check_config({"model": model, "task": TOKENS, **sections}, "laws")


@some
def test_resume_is_exact(number: int, tmp_path: Path) -> None:
    config = run_config(number, training={"steps": 5, "batch_tokens": 12, "lr": 0.01})
    whole = begin(tmp_path / "whole", config, PAIRS)
    records = list(train(whole))
    first = begin(tmp_path / "parts", config, PAIRS)
    head = list(islice(train(first), 3))
    save_checkpoint(first)
    second = in_a_new_process(tmp_path / "parts", PAIRS)
    tail = list(train(second))
    check_same(whole, second)
    for one, other in zip(records, head + tail, strict=True):
        assert (one.loss, one.parts, one.norm) == (other.loss, other.parts, other.norm)


@some
@torch.no_grad()
def test_saved_and_loaded_it_predicts_alike(number: int, tmp_path: Path) -> None:
    run = start_run(tmp_path / "run", run_config(number), PAIRS, PAIRS)
    for parameter in run.model.parameters():
        parameter += 0.1 * torch.randn(parameter.shape)
    describe(run, {})
    save_weights(run.model, run.folder / "model.safetensors")
    sources = ["abc", "", "d"]
    before = predictor(run).predict(sources, nbest=2)
    moved = (tmp_path / "run").rename(tmp_path / "elsewhere")
    loaded = regard.load(moved)
    assert loaded.config_ == run.config
    assert loaded.predict_detailed(sources, nbest=2) == before
    best = [p.text for p in predictor(run).predict(sources)]
    assert loaded.predict(sources, batch_size=2) == best
    shown = regard.inspect(loaded, "abc").as_dict()
    assert shown["target"]["text"] == best[0]
    assert all(0 <= step["probability"] <= 1 for step in shown["steps"])
    sizes = {name: len(shown[name]["tokens"]) for name in ("source", "target")}
    sizes["inputs"] = len(shown["inputs"])
    for one in shown["attention"]:
        shape = torch.tensor(one["heads"]).shape[1:]
        assert shape == (sizes[one["rows"]], sizes[one["columns"]])
    assert regard.inspect(loaded, "abc", "cab").as_dict()["target"]["forced"]


@some
@torch.no_grad()
def test_int8_weights_predict_nearly_alike(number: int) -> None:
    model, search = tiny(number), config_of(number).search
    request = SearchRequest(batch_of([0, 1, 3]).source, torch.tensor([4, 6, 7]))
    rounded = quantize(tiny(number))
    for one, other in zip(
        search.run(model, request), search.run(fast(rounded), request), strict=True
    ):
        if one[0].tokens == other[0].tokens:
            assert one[0].score == pytest.approx(other[0].score, abs=0.5)


def test_settings_come_back() -> None:
    for number in range(len(TREES)):
        config = config_of(number)
        again = check_config(config.model_dump(mode="json"), "laws")
        assert again == config
        assert not {None, "auto"} & set(flatten(again.model.model_dump(mode="json")).values())
