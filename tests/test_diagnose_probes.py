"""The probes against cases worked out by hand."""

import math
import random

import torch

from regard.data.tensors.padded import Batch, Padded, pad
from regard.experiments.diagnose.curves import gain_at_end, spikes
from regard.experiments.diagnose.data import _dependence, _presence
from regard.experiments.diagnose.distribution_shift import CharBigramModel, cross_entropy
from regard.experiments.diagnose.losses import (
    baseline_accuracy,
    constant_loss,
    constant_prediction,
    shuffle_order,
    shuffle_tokens,
    swap_sources,
)
from regard.experiments.diagnose.model_stats import _entropy, layer_of
from regard.experiments.diagnose.prediction_stats import repeats
from regard.experiments.diagnose.trials import best_rate, warmup_schedule
from regard.objectives import CrossEntropy, Squared


def test_letters_are_a_distribution_over_what_may_come() -> None:
    chars = CharBigramModel(["ab", "aab", "b"])
    known = ["a", "b", "\n"]
    for before in known:
        seen = chars.pairs[before]
        alone = {c: (chars.alone[c] + 3 / 4) / (chars.total + 3) for c in known}
        unseen = (3 / 4) / (chars.total + 3)  # all swap_sources chars together count as one
        total = sum((seen[c] + len(seen) * alone[c]) / (seen.total() + len(seen)) for c in known)
        rest = len(seen) * unseen / (seen.total() + len(seen))
        assert math.isclose(total + rest, 1.0)


def test_letters_prefer_their_own_language() -> None:
    draw = random.Random(1)
    texts = ["".join(draw.choices("ab", k=8)) for _ in range(200)]
    others = ["".join(draw.choices("bc", k=8)) for _ in range(100)]
    chars = CharBigramModel(texts[:100])
    baseline, other_fit = cross_entropy(chars, texts[100:]), cross_entropy(chars, others)
    assert abs(baseline.nats - (8 * math.log(2) + 0.0) / 9) < 0.4
    assert other_fit.nats > baseline.nats + 10 * (baseline.error + other_fit.error)


def test_the_same_answer_costs_its_entropy() -> None:
    batch = Batch(pad([[5], [5]]), pad([[5, 5, 6], [6]]))
    baseline = constant_prediction([batch])
    assert baseline is not None and baseline[5] == 2 and baseline[6] == 2
    loss = constant_loss(baseline, [batch], CrossEntropy())
    assert loss is not None and 0.6 < loss < math.log(2) + 0.7  # ln 2, and a little for the rest
    assert baseline_accuracy(baseline, [batch]) == 0.5
    numbers = Batch(pad([[5], [5]]), labels=torch.tensor([[1.0], [3.0]]))
    assert constant_loss(constant_prediction([numbers]), [numbers], Squared()) == 1.0


def test_changed_sources_keep_what_they_must() -> None:
    source = pad([[5, 6, 7], [8, 9]])
    turned = swap_sources(source)
    assert turned.data[0].tolist() == [8, 9, 0] and turned.mask[0].tolist() == [True, True, False]
    torch.manual_seed(0)
    dealt = shuffle_tokens(source)
    assert torch.equal(dealt.mask, source.mask)
    assert sorted(dealt.data[dealt.mask].tolist()) == [5, 6, 7, 8, 9]
    for _ in range(5):
        again = shuffle_order(source)
        assert sorted(again.data[0].tolist()) == [5, 6, 7]
        assert again.data[1].tolist() in ([8, 9, 0], [9, 8, 0])


def test_dependence_sees_copies_and_not_chance() -> None:
    draw = random.Random(1)
    rows = [draw.choices(range(5, 15), k=4) for _ in range(300)]
    source = _presence(pad(rows))
    copies = _dependence(source, source)
    dealt = _dependence(source, source[torch.randperm(300).numpy()])
    assert copies > 5 * dealt


def test_presence_counts_tokens_once_and_lengths() -> None:
    columns = _presence(pad([[5, 5], [6, 7, 8]]))
    assert columns.shape == (2, 5)  # four tokens and the length
    assert set(columns.round(6).flatten().tolist()) == {-1.0, 1.0}


def test_entropy_is_a_share_of_the_largest() -> None:
    weights = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    found = _entropy(weights)
    assert found is not None and torch.allclose(found, torch.ones(2))  # one position says nothing
    assert _entropy(torch.tensor([[1.0, 0.0]])) is None
    sharp = _entropy(torch.tensor([[0.999, 0.001]]))
    assert sharp is not None and float(sharp) < 0.02


def test_repeats_are_runs_of_up_to_three_tokens() -> None:
    assert repeats(list("abaaaac")) and repeats(list("xabababab")) and repeats(list("abcabcabcabc"))
    assert not repeats(list("abaaac")) and not repeats(list("ababab")) and not repeats([])


def test_the_best_rate_is_below_the_lowest_loss() -> None:
    rates = [10.0 ** (-6 + position / 10) for position in range(60)]
    losses = [abs(math.log10(rate) + 2) for rate in rates]  # lowest at 0.01
    found = best_rate(rates, losses)
    assert 0.005 < found["lowest"] < 0.02 and found["found"] < found["lowest"] / 5
    assert best_rate(rates, list(range(60)))["found"] is None  # it only rises
    assert best_rate(rates[:3], losses[:3])["found"] is None


def test_a_trial_warms_up_and_anneals() -> None:
    rate = warmup_schedule(1.0, 100)
    assert rate(0) == 0.1 and rate(50) == 1.0 and 0 < rate(99) < 0.05


def test_spikes_and_gains_of_curves() -> None:
    falling = [4 * 0.95**step for step in range(60)]
    assert spikes(falling) == 0
    assert spikes([*falling[:30], 9.0, *falling[31:]]) == 1
    flat = [(float(step), max(1.0, 4 - step / 10)) for step in range(0, 101, 10)]
    assert gain_at_end(flat) == 0.0
    steady = [(float(step), 4 - step / 50) for step in range(0, 101, 10)]
    found = gain_at_end(steady)
    assert found is not None and math.isclose(found, 0.2)
    assert gain_at_end(flat[:3]) is None


def test_weights_belong_to_layers() -> None:
    assert layer_of("decoder.layers.0.cross.join.weight") == "decoder.layers.0"
    assert layer_of("frontend.tokens.weight") == "frontend.tokens"
    assert layer_of("weight") == "weight"


def test_a_batch_of_vectors_is_compared_by_its_numbers() -> None:
    vectors = Padded(torch.tensor([[[1.0, 2.0]], [[3.0, 2.0]]]), torch.ones(2, 1, dtype=torch.bool))
    assert _presence(vectors).tolist() == [[-1.0], [1.0]]  # what never changes is omitted
