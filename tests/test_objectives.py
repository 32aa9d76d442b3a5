"""Cross entropy: equal to torch's in value and gradient, and to numbers worked out by hand."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
import torch
import torch.nn.functional as F
from pydantic import ValidationError
from torch import Tensor, nn

from regard.config.load import check_config
from regard.data.reading.read import Pair
from regard.data.tensors.padded import Batch, Outputs, Padded, pad
from regard.data.tensors.special import EOS
from regard.objectives import CrossEntropy
from regard.objectives.cross_entropy import SmoothedLoss
from regard.objectives.objective import DONE, Context, Loss
from regard.search import Beam, SearchRequest
from regard.training import shards
from regard.training.loop import train
from regard.training.start import start_run

N, V = 7, 9


class Fixed(nn.Module):
    """A model whose logits are given."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits)

    def forward(self, batch: Batch) -> Outputs:
        return Outputs(self.logits)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("size", [1.0, 30.0, 3000.0])
def test_equals_torch_in_value_and_gradient(smoothing: float, size: float) -> None:
    torch.manual_seed(0)
    ours = (torch.randn(N, V) * size).requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    labels = torch.randint(V, (N,))
    loss, nll = SmoothedLoss.apply(ours, labels, smoothing)
    expected = F.cross_entropy(theirs, labels, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        nll, F.cross_entropy(theirs, labels, reduction="sum"), rtol=1e-5, atol=1e-5
    )
    (loss / 3).backward()
    (expected / 3).backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-5, atol=1e-6)


def test_the_gradient_is_the_slope() -> None:
    """Each logit moved a little to both sides, as gradcheck does."""
    torch.manual_seed(0)
    logits, labels, h = torch.randn(2, 4).requires_grad_(), torch.tensor([1, 3]), 1e-2
    SmoothedLoss.apply(logits, labels, 0.2)[0].backward()
    for place in range(logits.numel()):
        shift = torch.zeros(8).index_fill(0, torch.tensor(place), h).view(2, 4)
        up, down = (SmoothedLoss.apply(logits + s, labels, 0.2)[0] for s in (shift, -shift))
        slope = (up - down).item() / (2 * h)
        assert slope == pytest.approx(logits.grad.flatten()[place].item(), abs=1e-3)


def test_the_gradient_of_a_row_sums_to_zero() -> None:
    logits = torch.randn(N, V, generator=torch.Generator().manual_seed(0)).requires_grad_()
    SmoothedLoss.apply(logits, torch.arange(N), 0.1)[0].backward()
    torch.testing.assert_close(logits.grad.sum(1), torch.zeros(N), atol=1e-6, rtol=0)


def test_half_precision_is_summed_in_full() -> None:
    torch.manual_seed(0)
    logits = torch.randn(N, V).bfloat16().requires_grad_()
    labels = torch.randint(V, (N,))
    loss, _ = SmoothedLoss.apply(logits, labels, 0.1)
    loss.backward()
    expected = F.cross_entropy(logits.float(), labels, label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(loss, expected.detach())
    assert logits.grad.dtype == torch.bfloat16


def test_by_hand() -> None:
    """Logits 0 and log 3: p = (1/4, 3/4). Smoothing .2 of two tokens: q = (.1, .9).

    Loss = .1 log 4 + .9 log 4/3; without smoothing log 4/3.
    """
    source = Padded(torch.zeros(1, 1).long(), torch.ones(1, 1).bool())
    target = Padded(torch.tensor([[1, 0, 0]]), torch.tensor([[True, False, False]]))
    model = Fixed(torch.tensor([[0.0, math.log(3)]]))
    loss = CrossEntropy(label_smoothing=0.2)(model, Batch(source, target))
    assert loss.sum.item() == pytest.approx(0.1 * math.log(4) + 0.9 * math.log(4 / 3), abs=1e-6)
    assert loss.parts["nll"] == pytest.approx(math.log(4 / 3), abs=1e-6)
    assert loss.count == 1
    loss.sum.backward()
    assert model.logits.grad[0].tolist() == pytest.approx([0.25 - 0.1, 0.75 - 0.9], abs=1e-6)


def test_uniform_logits_cost_log_v_a_token() -> None:
    source = Padded(torch.zeros(2, 1).long(), torch.ones(2, 1).bool())
    target = Padded(
        torch.tensor([[5, 6, 3], [3, 0, 0]]), torch.tensor([[True] * 3, [True, False, False]])
    )
    for smoothing in (0.0, 0.3):
        objective = CrossEntropy(label_smoothing=smoothing)
        loss = objective(Fixed(torch.zeros(4, V)), Batch(source, target))
        assert loss.count == objective.count(Batch(source, target)) == 4
        assert loss.sum.item() == pytest.approx(4 * math.log(V), rel=1e-6)
        assert math.exp(loss.parts["nll"] / loss.count) == pytest.approx(V)  # the perplexity


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, "much"])
def test_smoothing_is_a_share(smoothing: object) -> None:
    with pytest.raises(ValidationError, match="label_smoothing"):
        CrossEntropy(label_smoothing=smoothing)


class Searching(CrossEntropy):
    """Learns its own best outputs; counts how far the run is."""

    kind: Literal["searching"] = "searching"  # type: ignore[assignment]

    def prepare(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Batch:
        assert batch.source is not None and context.decode is not None and model.training
        request = SearchRequest(batch.source, torch.full((batch.rows,), 3))
        found = context.decode(Beam(beam=2), request)
        assert model.training and torch.is_grad_enabled()
        rows = [[*best[0].tokens[:2], EOS] for best in found]
        sampled = torch.rand(batch.rows)
        return batch._replace(target=pad(rows), prepared={"share": sampled})

    def __call__(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Loss:
        assert len(batch.prepared["share"]) == batch.rows  # also of some rows
        loss = super().__call__(model, batch, context)
        share = torch.tensor(context.progress) * batch.rows
        return replace(loss, parts={"share": share, "sampled": batch.prepared["share"].sum()})


def test_an_objective_may_search_before_the_rows_are_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torch_threads: Callable[[int], None]
) -> None:
    """With the same samples whatever the number of threads."""
    monkeypatch.setattr(shards, "MIN_ROWS", 1)
    pairs = [Pair(text, text[::-1], n) for n, text in enumerate(("ab", "ba", "abb", "bab"), 1)]
    found = []
    for threads in (1, 2):
        torch_threads(threads)
        config = check_config({"training": {"steps": 4, "batch_tokens": 20}}, "test")
        run = start_run(tmp_path, config, pairs, pairs)
        run.config = run.config.model_copy(update={"objective": Searching()})
        records = list(train(run))
        shares = [record.parts["share"] * record.tokens / record.examples for record in records]
        assert shares == pytest.approx([0.0, 0.25, 0.5, 0.75])
        found.append([record.parts["sampled"] * record.tokens for record in records])
    assert found[0] == pytest.approx(found[1])
