"""The conditional random field against enumeration of all label sequences."""

from itertools import pairwise, product

import pytest
import torch
from torch import Tensor

from regard.nn import crf

CASES = [(labels, length) for labels in (1, 2, 3, 4) for length in (1, 2, 3, 4, 5)]


def case(
    labels: int, length: int, scale: float = 1.0, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Random emissions, transitions, labels and mask: four rows, the first of full length."""
    draw = torch.Generator().manual_seed(labels * 10 + length)
    emissions = scale * torch.randn(4, length, labels, generator=draw, dtype=dtype)
    transitions = scale * torch.randn(labels + 1, labels + 1, generator=draw, dtype=dtype)
    lengths = torch.randint(1, length + 1, (4,), generator=draw)
    lengths[0] = length
    mask = torch.arange(length) < lengths[:, None]
    return emissions, transitions, torch.randint(labels, (4, length), generator=draw), mask


def plain_score(emissions: Tensor, transitions: Tensor, path: tuple[int, ...]) -> Tensor:
    """The score of one path through the emissions (n, C) of one row."""
    C = emissions.shape[-1]
    steps = [C, *path, C]
    total = sum(emissions[t, label] for t, label in enumerate(path))
    return total + sum(transitions[i, j] for i, j in pairwise(steps))


def enumerate_row(emissions: Tensor, transitions: Tensor) -> tuple[list[tuple[int, ...]], Tensor]:
    """All paths through one row (n, C), and their scores."""
    n, C = emissions.shape
    paths = list(product(range(C), repeat=n))
    return paths, torch.stack([plain_score(emissions, transitions, path) for path in paths])


def plain_nll(emissions: Tensor, transitions: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """-log p of each row by enumeration."""
    rows = []
    for row, n in enumerate(mask.sum(1).tolist()):
        _, scores = enumerate_row(emissions[row, :n], transitions)
        path = tuple(labels[row, :n].tolist())
        rows.append(scores.logsumexp(0) - plain_score(emissions[row, :n], transitions, path))
    return torch.stack(rows)


@pytest.mark.parametrize(("C", "length"), CASES)
def test_everything_equals_enumeration(C: int, length: int) -> None:
    emissions, transitions, labels, mask = case(C, length)
    totals = crf.partition(emissions, transitions, mask)
    best, score = crf.viterbi(emissions, transitions, mask)
    likely = crf.marginals(emissions, transitions, mask)
    given = crf.path_score(emissions, transitions, labels, mask)
    for row, n in enumerate(mask.sum(1).tolist()):
        paths, scores = enumerate_row(emissions[row, :n], transitions)
        path = tuple(labels[row, :n].tolist())
        torch.testing.assert_close(given[row], scores[paths.index(path)])
        torch.testing.assert_close(totals[row], scores.logsumexp(0))
        torch.testing.assert_close(score[row], scores.max())
        assert tuple(best[row, :n].tolist()) == paths[int(scores.argmax())]
        expected = torch.zeros(length, C, dtype=torch.float64)
        for path, p in zip(paths, scores.softmax(0), strict=True):
            expected[range(n), path] += p
        torch.testing.assert_close(likely[row], expected)
    assert (best[~mask] == 0).all() and (likely[~mask] == 0).all()


@pytest.mark.parametrize("scale", [1.0, 40.0, 300.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("C", "length"), [(1, 3), (3, 1), (3, 5), (4, 4)])
def test_nll_and_its_gradients_equal_enumeration(
    C: int, length: int, dtype: torch.dtype, scale: float
) -> None:
    """With small, large and huge scores: each takes another way through `partition`."""
    emissions, transitions, labels, mask = case(C, length, scale, dtype)
    weights = torch.tensor([1.0, -0.5, 2.0, 0.3], dtype=dtype)
    found, expected = [], []
    for function, results in ((crf.nll, found), (plain_nll, expected)):
        e, t = emissions.clone().requires_grad_(), transitions.clone().requires_grad_()
        loss = function(e, t, labels, mask)
        results += [loss, *torch.autograd.grad((loss * weights).sum(), [e, t])]
    within = {"rtol": 1e-9, "atol": 1e-9}
    if dtype == torch.float32:
        within = {"rtol": 1e-4, "atol": 1e-5 * max(1, scale)}
    for ours, plain in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, plain, **within)


def test_fast_and_plain_partition_agree() -> None:
    torch.manual_seed(0)
    emissions, transitions = 3 * torch.randn(16, 30, 12), 2 * torch.randn(13, 13)
    mask = torch.arange(30) < torch.randint(1, 31, (16, 1))
    found = crf.partition(emissions, transitions, mask)
    plain = crf.partition_in_logs(emissions.double(), transitions.double(), mask)
    torch.testing.assert_close(found.double(), plain, rtol=1e-6, atol=1e-5)


def test_gradcheck() -> None:
    emissions, transitions, labels, mask = case(3, 4)
    inputs = (emissions.requires_grad_(), transitions.requires_grad_())
    assert torch.autograd.gradcheck(lambda e, t: crf.nll(e, t, labels, mask), inputs)


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_padding_is_invisible(scale: float) -> None:
    """Neither what stands there nor how much of it there is."""
    emissions, transitions, labels, mask = case(3, 5, scale)
    noisy = emissions.masked_fill(~mask[..., None], float("nan"))
    other = labels.masked_fill(~mask, -100)
    loss = crf.nll(emissions, transitions, labels, mask)
    assert torch.equal(crf.nll(noisy, transitions, other, mask), loss)
    best, score = crf.viterbi(emissions, transitions, mask)
    again = crf.viterbi(noisy, transitions, mask)
    assert torch.equal(again[0], best) and torch.equal(again[1], score)
    for row, n in enumerate(mask.sum(1).tolist()):
        one = slice(row, row + 1), slice(0, n)
        alone = crf.nll(emissions[one], transitions, labels[one], mask[one])
        torch.testing.assert_close(alone, loss[one[0]])
        path, value = crf.viterbi(emissions[one], transitions, mask[one])
        assert path[0].tolist() == best[row, :n].tolist()
        torch.testing.assert_close(value, score[one[0]])


def test_gradients_at_padding_are_zero() -> None:
    emissions, transitions, labels, mask = case(3, 5)
    emissions = emissions.masked_fill(~mask[..., None], float("nan")).requires_grad_()
    crf.nll(emissions, transitions, labels, mask).sum().backward()
    assert emissions.grad is not None
    assert (emissions.grad[~mask] == 0).all() and emissions.grad.isfinite().all()


def test_forbidden_steps() -> None:
    """A transition of -inf is never taken and stays without gradient."""
    emissions, transitions, _, mask = case(3, 5)
    transitions[0, 1] = transitions[3, 2] = float("-inf")
    transitions.requires_grad_()
    labels, _ = crf.viterbi(emissions, transitions, mask)
    crf.nll(emissions, transitions, labels, mask).sum().backward()
    assert transitions.grad is not None and transitions.grad.isfinite().all()
    assert transitions.grad[0, 1] == transitions.grad[3, 2] == 0
    assert (crf.marginals(emissions, transitions, mask)[:, 0, 2] == 0).all()


def test_marginals_inside_inference_mode() -> None:
    emissions, transitions, _, mask = case(2, 3)
    with torch.inference_mode():
        found = crf.marginals(emissions + 0, transitions + 0, mask)
    torch.testing.assert_close(found, crf.marginals(emissions, transitions, mask))


def test_two_labels_by_hand() -> None:
    """Two positions, scores the logs of small numbers: weights 2*5*3, 2*1*1, 1*1*3 and 1*4*1."""
    emissions = torch.tensor([[[2.0, 1.0], [3.0, 1.0]]]).log()
    transitions = torch.tensor([[5.0, 1.0, 1.0], [1.0, 4.0, 1.0], [1.0, 1.0, 1.0]]).log()
    mask = torch.ones(1, 2, dtype=torch.bool)
    assert float(crf.partition(emissions, transitions, mask).exp()) == pytest.approx(39)
    labels, score = crf.viterbi(emissions, transitions, mask)
    assert labels.tolist() == [[0, 0]] and float(score.exp()) == pytest.approx(30)
    expected = torch.tensor([[[32.0, 7.0], [33.0, 6.0]]]) / 39
    torch.testing.assert_close(crf.marginals(emissions, transitions, mask), expected)
