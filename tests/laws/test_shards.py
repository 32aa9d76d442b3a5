"""Laws of gradients by several threads: those of the whole batch, and the same each time."""

import copy

import pytest
import torch
from torch import nn

from regard.core.threads import single_threaded_torch
from regard.data.tensors.padded import Batch
from regard.objectives import Loss
from regard.optim.precision import Precision, autocast
from regard.training import shards
from regard.training.run import Run

from .toys import TOYS, Case, all_cases, built, one_of_each_kind

CASES = [case for toy in TOYS for case in one_of_each_kind(all_cases(toy))]
CASES = [case for case in CASES if case.model.get("kind") != "ngram"]  # counted, no gradient


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Toys have few rows."""
    monkeypatch.setattr(shards, "MIN_ROWS", 1)


def gradients(run: Run, model: nn.Module, batch: Batch, threads: int) -> tuple[list, Loss]:
    model.zero_grad()
    loss = shards.backward(model, run.config.objective, batch, 7.0, threads)
    return [None if p.grad is None else p.grad.clone() for p in model.parameters()], loss


def whole_batch(run: Run) -> Batch:
    return run.corpus.batch(max(run.corpus.order(40, 1, 0), key=len))


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_gradient_of_the_parts_is_that_of_the_whole(case: Case) -> None:
    run = built(case)
    batch = whole_batch(run)
    batch = batch._replace(carry=gradients(run, run.model, batch, 1)[1].carry)
    assert len(shards.parts(batch, 2)) == 2
    one, loss = gradients(run, run.model, batch, 1)
    two, parted = gradients(run, run.model, batch, 2)
    torch.testing.assert_close(two, one, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(parted.sum, loss.sum.detach(), atol=1e-5, rtol=1e-4)
    assert parted.count == pytest.approx(loss.count)
    torch.testing.assert_close(parted.parts, loss.parts, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(parted.carry, loss.carry, atol=1e-5, rtol=1e-4)
    assert sum(float(g.abs().sum()) for g in one if g is not None) > 0


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_noise_repeats(case: Case) -> None:
    """Whichever thread comes first: the seed alone decides, and each part has noise of its own."""
    run = built(case)
    model = copy.deepcopy(run.model).train()
    for part in model.modules():
        if hasattr(part, "rate"):
            part.rate = 0.5
    found = []
    for _ in range(3):
        torch.manual_seed(5)
        # A copy: norms such as power keep statistics, which change the next gradient.
        found.append(gradients(run, copy.deepcopy(model), whole_batch(run), 2)[0])
        after = torch.rand(1)
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], atol=0, rtol=0)
    if shards.needs_batch(model):  # one part, with noise of torch's generator
        return
    torch.manual_seed(5)
    torch.randint(2**62, (2,))
    assert torch.equal(after, torch.rand(1))  # nothing else was drawn from torch's generator


@pytest.mark.parametrize(
    ("toy", "part"),
    [
        ("transduce", "norm.kind=batch"),
        ("transduce", "norm.kind=power"),
        ("classify-images", "cnn-grid"),
        ("captions", "transformer-cnn"),
    ],
)
def test_norms_of_the_batch_keep_it_whole(toy: str, part: str) -> None:
    """Two threads do as one: they would normalize by the statistics of half of the rows."""
    case = next(case for case in all_cases(toy) if part in case.name)
    run, found = built(case), []
    for threads in (1, 2):
        torch.manual_seed(5)
        model = copy.deepcopy(run.model).train()
        found.append((gradients(run, model, whole_batch(run), threads)[0], model.state_dict()))
    torch.testing.assert_close(found[0], found[1], atol=0, rtol=0)
    before, after = run.model.state_dict(), found[0][1]
    assert [name for name in after if not torch.equal(before[name], after[name])] != []


def test_gradients_are_added_to_those_there() -> None:
    run = built(next(case for case in CASES if case.toy == "transduce"))
    one, _ = gradients(run, run.model, whole_batch(run), 2)
    shards.backward(run.model, run.config.objective, whole_batch(run), 7.0, 2)
    for parameter, gradient in zip(run.model.parameters(), one, strict=True):
        torch.testing.assert_close(parameter.grad, 2 * gradient)
    run.model.zero_grad()


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_threads_have_the_precision_of_the_run(precision: Precision) -> None:
    run = built(next(case for case in CASES if case.toy == "transduce"))
    kinds: list[torch.dtype] = []
    layer = next(part for part in run.model.modules() if isinstance(part, nn.Linear))
    hook = layer.register_forward_hook(lambda part, given, found: kinds.append(found.dtype))
    with autocast(precision, torch.device("cpu")):
        one, _ = gradients(run, run.model, whole_batch(run), 1)
        two, _ = gradients(run, run.model, whole_batch(run), 2)
    hook.remove()
    run.model.zero_grad()
    assert kinds == [getattr(torch, precision)] * 3  # once, and once in each thread
    rounding = 2.0**-6 * max(float(g.abs().max()) for g in one if g is not None)
    torch.testing.assert_close(two, one, atol=rounding, rtol=0)
    assert not torch.is_autocast_enabled("cpu")


def test_the_number_of_threads_is_put_back() -> None:
    before = torch.get_num_threads()
    with single_threaded_torch():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_small_batches_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = whole_batch(built(next(case for case in CASES if case.toy == "tag")))
    monkeypatch.setattr(shards, "MIN_ROWS", batch.rows // 2 + 1)
    assert shards.parts(batch, 2)[0] is batch
    monkeypatch.setattr(shards, "MIN_ROWS", 1)
    assert sum(part.rows for part in shards.parts(batch, 2)) == batch.rows >= 2
