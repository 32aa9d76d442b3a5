"""Laws of dropout: the mean stays, evaluation has none, and a run repeats it exactly."""

import copy

import pytest
import torch
from torch import nn

from regard.data.tensors.padded import Batch
from regard.nn.dropout import POOL, Dropout


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_the_mean_is_kept(rate: float) -> None:
    torch.manual_seed(0)
    dropout = Dropout(rate).train()
    x = torch.full((100, 100), 2.0)
    outs = torch.stack([dropout(x) for _ in range(50)])  # 500,000 numbers
    assert float(outs.mean()) == pytest.approx(2.0, abs=0.02)
    assert float((outs == 0).float().mean()) == pytest.approx(rate, abs=0.01)
    assert outs.unique().tolist() == pytest.approx([0.0, 2 / (1 - rate)])
    assert float(outs.mean(0).std()) < 0.5 and len({float(out.sum()) for out in outs}) > 40


def test_neighbors_fall_independently() -> None:
    torch.manual_seed(0)
    zero = (Dropout(0.5).train()(torch.ones(400, 500)) == 0).float()
    for shift in (1, 2, 500):
        both = (zero.flatten()[shift:] * zero.flatten()[:-shift]).mean()
        assert float(both) == pytest.approx(0.25, abs=0.01)


def test_the_gradient_is_zero_where_the_activation_is() -> None:
    torch.manual_seed(0)
    x = torch.ones(20, 20, requires_grad=True)
    out = Dropout(0.3).train()(x)
    out.sum().backward()
    assert torch.equal(x.grad, out.detach())


def test_evaluation_and_rate_0_change_nothing() -> None:
    x = torch.randn(5, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0).train()(x) is x


def test_larger_than_the_pool() -> None:
    torch.manual_seed(0)
    out = Dropout(0.25).train()(torch.ones(POOL // 2 + 1))
    assert float((out == 0).float().mean()) == pytest.approx(0.25, abs=0.01)


def test_the_random_state_decides() -> None:
    """Putting torch's random state back gives the same noise: what resuming relies on."""
    dropout, x = Dropout(0.5).train(), torch.ones(30, 30)
    torch.manual_seed(4)
    dropout(x)
    state = torch.get_rng_state()
    first = [dropout(x) for _ in range(3)]
    torch.manual_seed(99)
    torch.set_rng_state(state)
    assert all(torch.equal(dropout(x), before) for before in first)
    assert not torch.equal(first[0], first[1])


@torch.no_grad()
def test_every_model(model: nn.Module, batch: Batch) -> None:
    """Noise in training, repeated by the seed; none in evaluation."""
    noisy = copy.deepcopy(model).train()
    torch.manual_seed(1)
    first, second = noisy(batch).logits, noisy(batch).logits
    noisy.load_state_dict(model.state_dict())  # statistics of norms continue in training
    torch.manual_seed(1)
    assert torch.equal(noisy(batch).logits, first) and not torch.equal(first, second)
    noisy.load_state_dict(model.state_dict())
    assert torch.equal(noisy.eval()(batch).logits, noisy(batch).logits)
    assert torch.equal(noisy(batch).logits, model(batch).logits)
