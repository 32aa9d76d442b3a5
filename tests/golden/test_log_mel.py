"""Features of sounds against their formulas, computed term by term."""

import math

import numpy as np
import pytest
import torch

from regard.data.reading.resample import resample_values
from regard.inputs.input import InputShape
from regard.inputs.log_mel import Analysis
from regard.inputs.sound_augmentation import Features, SoundAugment, at_speed, with_frequencies
from regard.inputs.sound_frontends import FramesFrontend, with_deltas


def noise(count: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-0.5, 0.5, count)


def reference(samples: np.ndarray, rate: int, bands: int) -> np.ndarray:
    """Log-mel features as the formulas say: sums over samples and frequencies, in double."""
    length, hop = round(0.025 * rate), round(0.010 * rate)
    size = 256 if rate == 8000 else 512
    window = [0.5 - 0.5 * math.cos(2 * math.pi * n / length) for n in range(length)]
    angles = np.outer(np.arange(size // 2 + 1), np.arange(length)) * (2 * math.pi / size)
    low, high = (2595 * math.log10(1 + hertz / 700) for hertz in (20, rate / 2))
    mels = [low + (high - low) * i / (bands + 1) for i in range(bands + 2)]
    edges = [700 * (10 ** (mel / 2595) - 1) for mel in mels]
    rows = []
    for start in range(0, len(samples) - length + 1, hop):
        frame = samples[start : start + length] * window
        power = (np.cos(angles) @ frame) ** 2 + (np.sin(angles) @ frame) ** 2
        row = []
        for left, peak, right in zip(edges, edges[1:], edges[2:], strict=False):
            total = 0.0
            for k, value in enumerate(power):
                hertz = k * rate / size
                if left < hertz < right:
                    up, down = (hertz - left) / (peak - left), (right - hertz) / (right - peak)
                    total += value * min(up, down)
            row.append(math.log(max(total, 1e-8)))
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize(("rate", "bands"), [(8000, 40), (16000, 60)])
def test_features_are_those_of_the_formula(rate: int, bands: int) -> None:
    samples = noise(round(0.1 * rate)) * np.linspace(0, 1, round(0.1 * rate))
    samples[-rate // 50 :] = 0
    found = Analysis(rate, bands).log_mel(samples)
    np.testing.assert_allclose(found, reference(samples, rate, bands), atol=1e-4)


@pytest.mark.parametrize(("seconds", "count"), [(1, 98), (10, 998)])
@pytest.mark.parametrize("rate", [8000, 16000, 44100])
def test_windows_of_25_ms_every_10_ms(rate: int, seconds: int, count: int) -> None:
    analysis = Analysis(rate, 20)
    assert analysis.windows(rate * seconds) == count
    if rate == 8000:
        assert (analysis.length, analysis.hop) == (200, 80)
    assert len(analysis.log_mel(noise(rate * seconds))) == count


def test_a_long_sound_is_computed_in_blocks() -> None:
    analysis, samples = Analysis(8000, 20), noise(80 * 5000)
    whole = analysis.log_mel(samples)
    np.testing.assert_allclose(whole[4090:4100], analysis.log_mel(samples[80 * 4090 :])[:10])


@pytest.mark.parametrize(("rate", "bands"), [(8000, 80), (16000, 128), (1000, 40)])
def test_each_band_has_a_frequency(rate: int, bands: int) -> None:
    assert np.isfinite(found := Analysis(rate, bands).log_mel(noise(rate))).all()
    assert (found.max(0) > math.log(1e-8)).all()


@pytest.mark.parametrize(("old", "new"), [(44100, 16000), (8000, 16000), (8001, 8000)])
def test_resampled_tones_are_the_same_tones(old: int, new: int) -> None:
    def tone(rate: int) -> np.ndarray:
        return np.sin(2 * np.pi * 440 * np.arange(rate // 4) / rate)

    found, expected = resample_values(tone(old), old, new), tone(new)
    assert len(found) == -(-len(tone(old)) * new // old)
    inner = slice(200, min(len(found), len(expected)) - 200)
    np.testing.assert_allclose(found[inner], expected[inner], atol=1e-4)


def test_tones_above_the_new_range_are_removed() -> None:
    tone = np.sin(2 * np.pi * 5000 * np.arange(16000) / 16000)
    assert abs(resample_values(tone, 16000, 8000)[200:-200]).max() < 1e-3


def test_deltas_are_slopes() -> None:
    """The slope of a straight line, and by hand at the ends: (1 * (2 - 0) + 2 * (4 - 0)) / 10."""
    line = torch.arange(0, 20, 2.0).view(1, 10, 1)
    mask = torch.ones(1, 10, dtype=torch.bool)
    found = with_deltas(line, mask, 2)[0]
    assert found.shape == (10, 3)
    assert torch.allclose(found[2:8, 1], torch.tensor(2.0))
    assert found[0, 1].item() == pytest.approx((1 * (2 - 0) + 2 * (4 - 0)) / 10)
    assert found[9, 1].item() == pytest.approx((1 * (18 - 16) + 2 * (18 - 14)) / 10)
    assert torch.allclose(found[4:6, 2], torch.tensor(0.0))


def test_each_recording_has_mean_0_and_deviation_1() -> None:
    frontend = FramesFrontend(SoundAugment(), InputShape("sound", 3, rate=8000), 0, None)
    data, mask = torch.randn(2, 9, 3) * 4 + 7, torch.ones(2, 9, dtype=torch.bool)
    mask[1, 5:] = False
    found = frontend.standardize(Features(data, mask))
    for row, count in ((0, 9), (1, 5)):
        expected = (data[row, :count] - data[row, :count].mean(0)) / data[row, :count].std(
            0, unbiased=False
        )
        torch.testing.assert_close(found[row, :count], expected)


def test_twice_as_fast_is_half_as_long() -> None:
    """Interpolated by hand: new window i is at 2 (i + 0.5) - 0.5."""
    data = torch.arange(8.0).view(1, 8, 1)
    x = Features(data.repeat(2, 1, 1), torch.tensor([[True] * 8, [True] * 4 + [False] * 4]))
    found = at_speed(x, torch.tensor([2.0, 1.0]))
    assert found.mask.sum(1).tolist() == [4, 4]
    assert found.data[0, :, 0].tolist() == [0.5, 2.5, 4.5, 6.5]
    assert found.data[1, :, 0].tolist() == [0, 1, 2, 3]


def test_higher_frequencies_are_in_higher_bands() -> None:
    """A tone of 1,000 Hz played 1.2 times as fast looks like a tone of 1,200 Hz."""
    analysis = Analysis(8000, 40)
    time = np.arange(1600) / 8000
    from regard.inputs.log_mel import band_edges

    edges = torch.from_numpy(band_edges(8000, 40)).float()
    low, high = (
        torch.from_numpy(analysis.log_mel(np.sin(2 * np.pi * hertz * time)))[None]
        for hertz in (1000, 1200)
    )
    found = with_frequencies(low, torch.tensor([1.2]), edges)
    assert found[0].mean(0).argmax() == high[0].mean(0).argmax() != low[0].mean(0).argmax()
    assert torch.allclose(with_frequencies(low, torch.tensor([1.0]), edges), low, atol=1e-4)


def test_masks_have_at_most_their_width() -> None:
    augment = SoundAugment(frequency_masks=1, frequency_width=0.25, time_masks=1, time_width=0.5)
    ones = torch.ones(50, 20, 8)
    mask = torch.arange(20) < torch.tensor([20, 6])[:, None].repeat(25, 1)
    torch.manual_seed(0)
    hidden = augment.hide(Features(ones, mask)) == 0
    assert hidden.any(1).any(0).all()  # no band is never hidden
    assert (hidden.all(1).sum(1) <= 2).all()
    in_time = hidden.all(2)
    assert (in_time.sum(1) <= 0.5 * mask.sum(1) + 1).all() and not (in_time & ~mask).any()
    assert in_time.any(1).float().mean() > 0.8
