"""Synthesis by hand: alignments by enumeration, losses of small examples, sounds from features."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from regard.data.tensors.padded import Batch, Padded
from regard.inputs.griffin_lim import griffin_lim, linear_power, overlap_add, to_samples, transform
from regard.inputs.log_mel import Analysis, filters
from regard.metrics.spectra import cepstrum, distortion, measure_sounds, warped_mean
from regard.models.frame_outputs import FrameOutputs, grouped
from regard.nn.alignment import best_durations, expanded, forward_sum
from regard.objectives.frame_loss import FrameLoss
from regard.views.plots.sound_plot import example

ANALYSIS = Analysis(8000, 40)
SIZES = [(1, 1), (4, 2), (5, 3), (3, 3), (6, 4)]  # frames, positions
SAMPLE = np.random.default_rng(0)


def divisions(frames: int, positions: int) -> list[tuple[int, ...]]:
    """All durations of positions, each at least one frame."""
    cuts = itertools.combinations(range(1, frames), positions - 1)
    return [tuple(np.diff([0, *some, frames]).tolist()) for some in cuts]


def scores() -> tuple[Tensor, Tensor, Tensor]:
    """Padded log probabilities of positions, and the numbers of real frames and positions."""
    frames, positions = (torch.tensor(side) for side in zip(*SIZES, strict=True))
    raw = torch.randn(len(SIZES), 6, 4, generator=torch.Generator().manual_seed(1))
    padding = torch.arange(4) >= positions[:, None]
    return raw.masked_fill(padding[:, None], -1e4).log_softmax(-1), frames, positions


def probability(p: Tensor, durations: tuple[int, ...]) -> float:
    """The log probability of an alignment."""
    at = [s for s, count in enumerate(durations) for _ in range(count)]
    return float(p[range(len(at)), at].sum())


def test_forward_sum_is_the_sum_over_all_alignments() -> None:
    p, frames, positions = scores()
    found = forward_sum(p, frames, positions)
    for row, size in enumerate(SIZES):
        every = [probability(p[row], one) for one in divisions(*size)]
        assert float(-found[row]) == pytest.approx(math.log(sum(map(math.exp, every))), abs=1e-4)


def test_best_durations_are_the_best_of_all_alignments() -> None:
    p, frames, positions = scores()
    found = best_durations(p, frames, positions)
    for row, size in enumerate(SIZES):
        best = max(divisions(*size), key=lambda one: probability(p[row], one))
        assert tuple(found[row].tolist()) == (*best, *[0] * (4 - size[1]))


def test_rows_without_an_alignment_have_neither() -> None:
    p = torch.zeros(1, 2, 3).log_softmax(-1)
    sizes = torch.tensor([2]), torch.tensor([3])
    assert forward_sum(p, *sizes).tolist() == [math.inf]
    assert best_durations(p, *sizes).tolist() == [[0, 0, 0]]


def test_expansion_by_hand() -> None:
    at, mask, fraction = expanded(torch.tensor([[2, 1, 0], [1, 1, 2]]))
    assert mask.tolist() == [[True] * 3 + [False], [True] * 4]
    assert at[0, :3].tolist() == [0, 0, 1] and at[1].tolist() == [0, 1, 2, 2]
    assert fraction[0, :3].tolist() == [0.25, 0.75, 0.5]


def test_steps_of_two_frames() -> None:
    data = torch.arange(6.0).view(1, 3, 2)
    found = grouped(Padded(data, torch.tensor([[True, True, True]])), 2)
    assert found.data.tolist() == [[[0, 1, 2, 3], [4, 5, 0, 0]]]
    assert found.mask.tolist() == [[True, True]]


class Fixed(nn.Module):
    """A model whose output is given."""

    def __init__(self, output: FrameOutputs) -> None:
        super().__init__()
        self.output = output

    def forward(self, batch: Batch) -> FrameOutputs:
        return self.output


def batch() -> Batch:
    """One source of two positions and one target of three frames with two bands, one padded."""
    mask = torch.tensor([[True, True, False]])
    target = Padded(torch.tensor([[[1.0, 0.0], [0.0, 0.0], [9.0, 9.0]]]), mask)
    return Batch(Padded(torch.tensor([[5, 6]]), torch.tensor([[True, True]])), target)


def test_loss_of_steps_by_hand() -> None:
    frames = torch.tensor([[[1.0, 2.0], [0.5, 0.0], [0.0, 0.0]]])
    stop = Padded(torch.tensor([[0.0, 0.0]]), torch.tensor([[True, True]]))
    output = FrameOutputs(frames, torch.tensor([[True, True]]), stop)
    loss = FrameLoss(stop_weight=2.0, stop_positive_weight=3.0)(Fixed(output), batch())
    distance = (2 + 4) / 2 + (0.5 + 0.25) / 2
    assert loss.count == 2
    assert float(loss.parts["frames"]) == pytest.approx(distance)
    assert float(loss.parts["stop"]) == pytest.approx(4 * math.log(2))  # 1 no, 3 times yes
    assert float(loss.sum) == pytest.approx(distance + 8 * math.log(2))


def test_loss_of_durations_by_hand() -> None:
    output = FrameOutputs(
        batch().target.data,  # type: ignore[union-attr]
        torch.tensor([[True, True]]),
        alignment=torch.tensor([[[0.5, 0.5], [0.25, 0.75], [0.5, 0.5]]]).log(),
        durations=torch.tensor([[1, 1]]),
        log_durations=torch.tensor([[0.5, -1.0]]),
    )
    loss = FrameLoss(alignment_weight=2.0, duration_weight=3.0)(Fixed(output), batch())
    nll = -math.log(0.5 * 0.75)
    assert float(loss.parts["alignment"]) == pytest.approx(nll, abs=1e-5)
    assert float(loss.parts["durations"]) == pytest.approx(1.25)
    assert float(loss.sum) == pytest.approx(2 * nll + 3 * 1.25, abs=1e-5)


def slow_warp(costs: np.ndarray, i: int, j: int) -> tuple[float, int]:
    """Sum and length of the best path to a pair, by recursion."""
    if i == j == 0:
        return float(costs[0, 0]), 1
    before = [
        slow_warp(costs, *one) for one in ((i - 1, j - 1), (i - 1, j), (i, j - 1)) if min(one) >= 0
    ]
    total, steps = min(before, key=lambda one: one[0])
    return total + float(costs[i, j]), steps + 1


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (5, 1), (4, 6), (5, 3)])
def test_warping_is_the_best_path(shape: tuple[int, int]) -> None:
    costs = SAMPLE.random(shape)
    total, steps = slow_warp(costs, shape[0] - 1, shape[1] - 1)
    assert warped_mean(costs) == pytest.approx(total / steps)


def test_distortion_of_a_cosine() -> None:
    one = np.zeros((3, 8))
    other = one + 2 * np.cos(np.pi * 2 * (np.arange(8) + 0.5) / 8)  # log power
    assert cepstrum(other)[0, 1] == pytest.approx(1.0)  # the log amplitude: half of the log power
    decibels = 10 / math.log(10) * other  # the root of their mean square is the distortion
    assert distortion(one, other) == pytest.approx(np.sqrt(np.square(decibels).mean()))
    assert distortion(one, one + 3.0) == pytest.approx(0, abs=1e-6)  # louder


def test_metrics_of_two_sounds() -> None:
    made = [np.zeros((6, 4)), np.zeros((9, 4))]
    true = [np.zeros((4, 4)), np.zeros((10, 4))]
    scores = measure_sounds(made, true, [False, True]).scores()
    assert scores == pytest.approx({"mcd": 0.0, "duration_error": 30.0, "stop_errors": 50.0})


def test_overlap_add_inverts_the_transform() -> None:
    samples = torch.from_numpy(SAMPLE.standard_normal(200 + 80 * 12).astype(np.float32))
    again = overlap_add(transform(samples, ANALYSIS), ANALYSIS)
    inner = slice(30, -30)  # windows end near zero
    assert again.shape == samples.shape
    torch.testing.assert_close(again[inner], samples[inner], atol=1e-4, rtol=1e-4)


def test_power_of_bands_is_inverted() -> None:
    bank = filters(ANALYSIS.rate, ANALYSIS.size, ANALYSIS.bands)
    power = SAMPLE.random((5, ANALYSIS.size // 2 + 1)) @ bank
    found = linear_power(power, ANALYSIS)
    assert bool((found >= 0).all())
    np.testing.assert_allclose(found.numpy() @ bank, power, rtol=0.05)


def tone() -> np.ndarray:
    time = np.arange(8000) / 8000
    return (0.5 * np.sin(2 * np.pi * 440 * time)).astype(np.float32)


def voice() -> np.ndarray:
    return example().samples.astype(np.float32) / 32768


@pytest.mark.parametrize(("sound", "most"), [(tone(), 0.5), (voice(), 0.25)])
def test_features_of_the_made_sound_are_close(sound: np.ndarray, most: float) -> None:
    features = ANALYSIS.log_mel(sound)
    made = to_samples(features, ANALYSIS)
    again = ANALYSIS.log_mel(made.astype(np.float32))
    assert again.shape == features.shape
    loud = features > features.max() - 7  # 30 dB
    assert np.abs(again - features)[loud].mean() < most
    assert (made == to_samples(features, ANALYSIS)).all()  # deterministic


def test_the_frequency_of_a_tone_is_kept() -> None:
    made = to_samples(ANALYSIS.log_mel(tone()), ANALYSIS)
    spectrum = np.abs(np.fft.rfft(made))
    assert abs(spectrum.argmax() * 8000 / len(made) - 440) < 25


def test_true_phases_need_no_iterations() -> None:
    """The momentum does not move a spectrum that belongs to a sound."""
    samples = torch.from_numpy(voice())
    spectrum = transform(samples, ANALYSIS)
    found = transform(griffin_lim(spectrum.abs(), ANALYSIS, 5), ANALYSIS).abs()
    assert float((found - spectrum.abs()).norm() / spectrum.abs().norm()) < 0.4
