"""Location-aware and monotonic attention: formulas written as plain loops, and enumeration.

R rows, T target length, S source length, D width of the decoder, M width of the memory.
"""

import itertools
import math

import pytest
import torch
from torch import Tensor

from regard.core.options import kinds_of
from regard.data.tensors.padded import Padded
from regard.nn.cross_kinds import RecurrentCross
from regard.nn.dropout import StepNoise, use_step_noise
from regard.nn.monotonic_score import MonotonicScore, chunk_weights, expected_stops

T, S, D, M = 3, 6, 5, 4
LENGTHS = torch.tensor([6, 4, 1])
MASK = torch.arange(S) < LENGTHS[:, None]


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=2e-6, rtol=1e-5)


def build(kind: str, **options: float) -> torch.nn.Module:
    torch.manual_seed(4)
    module = kinds_of(RecurrentCross)[kind](**options).build(D, M)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    return module.eval()


def random_inputs() -> tuple[Tensor, Padded]:
    torch.manual_seed(5)
    return torch.randn(3, T, D), Padded(torch.randn(3, S, M), MASK)


def weights_of(module: torch.nn.Module, h: Tensor, memory: Padded) -> Tensor:
    """The weights (3, T, S) of a pass over all states."""
    weights, _ = module.attend(h, memory, module.project(memory), None)
    return weights.detach()


@pytest.mark.parametrize("cumulative", [False, True])
def test_location_scores_by_the_formula(cumulative: bool) -> None:
    """v . tanh(W h + U m + V f), where f is a sum over neighbors of each position."""
    module, (h, memory) = build("location", cumulative=cumulative, window=2), random_inputs()
    found = weights_of(module, h, memory)
    filters = module.convolve.weight  # (F, maps, 5)
    for row, length in enumerate(LENGTHS.tolist()):
        maps = torch.zeros(1 + cumulative, length)
        maps[0, 0] = 1.0
        for t in range(T):
            scores = []
            for s in range(length):
                near = [(k, s + k - 2) for k in range(5) if 0 <= s + k - 2 < length]
                f = sum(filters[:, :, k] @ maps[:, place] for k, place in near)
                inner = module.query(h[row, t]) + module.key(memory.data[row, s])
                scores.append(module.weigh(torch.tanh(inner + module.place(f))))
            weights = torch.cat(scores).softmax(0).detach()
            close(found[row, t, :length], weights)
            assert not found[row, t, length:].any()
            maps = torch.stack([weights, maps[-1] + weights])[: 1 + cumulative]


def test_the_expected_alignment_is_the_loop_of_the_paper() -> None:
    """q_j = (1 - p_{j-1}) q_{j-1} + a_j, for many lengths, also those that are no powers of two."""
    torch.manual_seed(0)
    for size in (1, 2, 3, 5, 8, 13):
        stop, before = torch.rand(2, 4, size).double(), torch.rand(2, size).double()
        found = expected_stops(stop, before)
        for row in range(2):
            last = before[row]
            for t in range(4):
                q, own = 0.0, []
                for j in range(size):
                    q = (
                        (1 - float(stop[row, t, j - 1])) * q + float(last[j])
                        if j
                        else float(last[0])
                    )
                    own.append(float(stop[row, t, j]) * q)
                last = torch.tensor(own).double()
                torch.testing.assert_close(found[row, t], last)


def test_the_expected_alignment_is_the_sum_over_all_alignments() -> None:
    """Each alignment is a list of stops that never go back; the last position always stops."""
    torch.manual_seed(1)
    stop = torch.rand(T, 4).double()
    stop[:, -1] = 1.0
    expected = torch.zeros(T, 4).double()
    for stops in itertools.product(range(4), repeat=T):
        p, at = 1.0, 0
        for t, to in enumerate(stops):
            passed = math.prod(1 - float(stop[t, j]) for j in range(at, to))
            p *= passed * float(stop[t, to]) if to >= at else 0.0
            at = to
        for t, to in enumerate(stops):
            expected[t, to] += p
    first = torch.tensor([[1.0, 0.0, 0.0, 0.0]]).double()
    torch.testing.assert_close(expected_stops(stop[None], first)[0], expected)
    close(expected.sum(1), torch.ones(T).double())


def test_thousands_of_positions_are_stable() -> None:
    """Also where nothing stops for long, and where all stops at once. So are the gradients."""
    scores = torch.full((1, 3, 3000), -20.0)
    scores[:, 1, :1500] = 20.0
    scores.requires_grad_()
    first = torch.zeros(1, 3000)
    first[0, 0] = 1.0
    last = torch.arange(3000) == 2999
    found = expected_stops(scores.sigmoid().masked_fill(last, 1.0), first)
    found[..., 2999].sum().backward()
    close(found.sum(-1), torch.ones(1, 3))
    assert float(found[0, 0, 2999].detach()) == pytest.approx(1.0, abs=1e-4)
    assert scores.grad is not None and bool(scores.grad.isfinite().all())


def test_monotonic_scores_by_the_formula() -> None:
    """g v . tanh(W h + U m) / |v| + r; all weight of a token that passes the end is at the end."""
    module, (h, memory) = build("monotonic"), random_inputs()
    found = weights_of(module, h, memory)
    part, v = module.stop, module.stop.weigh.weight[0]
    for row, length in enumerate(LENGTHS.tolist()):
        last = [1.0] + [0.0] * (length - 1)
        for t in range(T):
            q, own = 0.0, []
            for j in range(length):
                inner = torch.tanh(part.query(h[row, t]) + part.key(memory.data[row, j]))
                score = module.gain * (v @ inner) / v.norm() + module.offset
                p = 1.0 if j == length - 1 else float(score.detach().sigmoid())
                q += last[j]
                own.append(p * q)
                q *= 1 - p
            close(found[row, t, :length], torch.tensor(own))
            assert not found[row, t, length:].any()
            last = own


def test_chunks_by_the_formula() -> None:
    """beta_j: sum over stops k of a_k exp(u_j) / sum of exp(u) over the chunk that ends at k."""
    torch.manual_seed(2)
    stops, scores = torch.rand(S), torch.randn(S)
    for size in (1, 2, 4, 9):
        expected = torch.zeros(S)
        for k in range(S):
            chunk = range(max(0, k - size + 1), k + 1)
            whole = sum(math.exp(float(scores[j])) for j in chunk)
            for j in chunk:
                expected[j] += float(stops[k]) * math.exp(float(scores[j])) / whole
        close(chunk_weights(stops, scores, size), expected)


@pytest.mark.parametrize("kind", ["location", "monotonic"])
def test_steps_equal_one_pass_and_padding_is_invisible(kind: str) -> None:
    """With chunks, or with the sum of weights; of a row alone, as of all with more padding."""
    more = {"chunk": 3} if kind == "monotonic" else {"cumulative": True}
    module, (h, memory) = build(kind, **more), random_inputs()
    whole = weights_of(module, h, memory)
    close(whole.sum(-1), torch.ones(3, T))
    wide = Padded(*(torch.nn.functional.pad(x, (0, 0, 0, 3) if x.dim() > 2 else (0, 3))
                    for x in (memory.data, memory.mask)))  # fmt: skip
    close(weights_of(module, h, wide)[..., :S], whole)
    keys, past = module.project(memory), None
    for t in range(T):
        weights, past = module.attend(h[:, t : t + 1], memory, keys, past)
        close(weights[:, 0], whole[:, t])


def test_noise_is_for_training_only_and_the_same_step_by_step() -> None:
    module, (h, memory) = build("monotonic"), random_inputs()
    assert isinstance(module, MonotonicScore)
    calm = weights_of(module, h, memory)
    module.train()
    torch.manual_seed(7)
    noisy = weights_of(module, h, memory)
    assert not torch.allclose(calm, noisy, atol=1e-3)
    torch.manual_seed(7)
    noise, past, keys = StepNoise(T), None, module.project(memory)
    for t in range(T):
        with use_step_noise(noise):
            weights, past = module.attend(h[:, t : t + 1], memory, keys, past)
        close(weights[:, 0], noisy[:, t])
        noise.next()
