"""Scheduled sampling: decays by hand, what the decoder reads, and the noise of all passes."""

import math
from itertools import pairwise

import pytest
import torch
from pydantic import ValidationError

from regard.config.defaults import fill_defaults
from regard.config.load import check_config
from regard.core.data_stats import DataStats
from regard.data.tensors.padded import Batch, pad, shifted
from regard.data.tensors.special import BOS, EOS
from regard.inputs.input import InputShape
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.dropout import Dropout, StepNoise, repeatable_noise, use_step_noise
from regard.objectives import Context, CrossEntropy, ScheduledSampling
from regard.objectives.decay import ExponentialDecay, InverseSigmoidDecay, LinearDecay
from regard.optim.precision import autocast

V = 12
BATCH = Batch(
    pad([[6, 7, EOS], [8, EOS], [9, 6, 7, EOS]]),
    pad([[5, 6, 7, 8, EOS], [6, EOS], [7, 9, 10, EOS]]),
)


def model(kind: str, dropout: float = 0.3) -> EncoderDecoder:
    """A tiny model in training mode."""
    sizes = {"kind": kind, "width": 8, "layers": 2, "dropout": dropout}
    sizes |= {} if kind == "recurrent" else {"heads": 2, "feedforward_width": 12}
    tree = {"model": {"encoder": sizes, "decoder": sizes}}
    config, _ = fill_defaults(check_config(tree, "test"), DataStats(4, 40, V, False))
    torch.manual_seed(0)
    built = config.model.build(InputShape("text", V), V, False)
    assert isinstance(built, EncoderDecoder)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    return built.train()


def test_decays_by_hand() -> None:
    assert LinearDecay(final=0.2).probability(0.25) == pytest.approx(0.8)
    half = (math.exp(-1) - math.exp(-2)) / (1 - math.exp(-2))
    assert ExponentialDecay(final=0.5, rate=2).probability(0.5) == pytest.approx(0.5 + 0.5 * half)
    assert InverseSigmoidDecay(final=0, rate=8).probability(0.5) == pytest.approx(0.5)


@pytest.mark.parametrize("decay", [LinearDecay, ExponentialDecay, InverseSigmoidDecay])
@pytest.mark.parametrize("final", [0.0, 0.4, 1.0])
def test_decays_fall_from_one_to_their_end(decay: type, final: float) -> None:
    one = decay(final=final)
    values = [one.probability(step / 20) for step in range(21)]
    assert values[0] == pytest.approx(1.0) and values[-1] == pytest.approx(final)
    assert all(a >= b - 1e-12 for a, b in pairwise(values))


@pytest.mark.parametrize("kind", ["recurrent", "transformer"])
@pytest.mark.parametrize("passes", [0, 2])
def test_true_tokens_alone_are_teacher_forcing(kind: str, passes: int) -> None:
    """Bit for bit, in loss and gradient."""
    found = []
    for objective in (
        ScheduledSampling(decay=LinearDecay(final=1.0), passes=passes),
        CrossEntropy(),
    ):
        one = model(kind)
        torch.manual_seed(3)
        batch = objective.prepare(one, BATCH, Context(progress=0.7))
        torch.manual_seed(4)
        loss = objective(one, batch)
        found.append((loss.sum, torch.autograd.grad(loss.sum, list(one.parameters()))))
        assert float(loss.parts.get("own_inputs", 0.0)) == 0
    torch.testing.assert_close(found[0], found[1], atol=0, rtol=0)


def test_about_the_wanted_fraction_is_own() -> None:
    target = pad([[5] * 9 + [EOS]] * 400)
    objective = ScheduledSampling(decay=LinearDecay(final=0.4), passes=2)
    batch = objective.prepare(model("transformer"), Batch(target, target), Context(progress=0.5))
    own = batch.prepared["own"]
    assert not own[:, 0].any()  # BOS
    assert float(own[:, 1:].double().mean()) == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize("kind", ["recurrent", "transformer"])
@pytest.mark.parametrize("mix", ["sample", "argmax"])
def test_as_many_passes_as_tokens_are_step_by_step(kind: str, mix: str) -> None:
    """With dropout, because all passes and all steps have the same masks."""
    one = model(kind)
    torch.manual_seed(3)
    steps = ScheduledSampling(decay=LinearDecay(final=0.1), passes=0, mix=mix)
    batch = steps.prepare(one, BATCH, Context(progress=1.0))
    found = []
    for passes in (0, 2, 5):
        torch.manual_seed(4)
        objective = steps.model_copy(update={"passes": passes})
        found.append(objective.inputs(one, batch))
        assert torch.equal(torch.rand(2), torch.manual_seed(4) and torch.rand(2))
    mask = BATCH.target.mask
    assert torch.equal(found[0][mask], found[2][mask])
    true, own = shifted(BATCH.target.data), batch.prepared["own"]
    assert torch.equal(found[0][~own & mask], true[~own & mask]) and (found[0][own] != BOS).all()
    assert (found[0] != true)[mask].any()  # otherwise the test shows nothing
    loss = steps(one, batch)
    assert loss.parts["own_inputs"] == own.sum() > loss.parts["wrong_inputs"] - 1 > 0


def test_two_passes_by_hand() -> None:
    """The second pass reads the most probable tokens of a first one over true tokens."""
    one = model("transformer", 0.0)
    logits = one.eval()(BATCH).logits
    logits[:, [0, 1, 2, 4]] = float("-inf")
    best = torch.zeros(BATCH.target.data.shape, dtype=torch.long)
    best[BATCH.target.mask] = logits.argmax(-1)
    objective = ScheduledSampling(decay=LinearDecay(final=0.0), passes=2, mix="argmax")
    batch = objective.prepare(one.train(), BATCH, Context(progress=1.0))
    expected = torch.cat([torch.full((3, 1), BOS), best[:, :-1]], 1)
    mask = BATCH.target.mask
    assert torch.equal(objective.inputs(one, batch)[mask], expected[mask])


def test_gradients_are_those_of_the_last_pass_in_bfloat16_too() -> None:
    """Rounded weights of a pass without gradients are not reused."""
    one = model("transformer", 0.0)
    objective = ScheduledSampling(decay=LinearDecay(final=0.0), passes=2)
    batch = objective.prepare(one, BATCH, Context(progress=1.0))
    with autocast("bfloat16", torch.device("cpu")):
        objective(one, batch).sum.backward()
    assert all(p.grad is not None for p in one.parameters())


def test_evaluation_is_cross_entropy() -> None:
    one = model("recurrent").eval()
    objective = ScheduledSampling()
    assert objective.prepare(one, BATCH) is BATCH
    assert torch.equal(objective(one, BATCH).sum, CrossEntropy()(one, BATCH).sum)


def test_one_pass_would_be_teacher_forcing() -> None:
    with pytest.raises(ValidationError, match=r"expected 0 \(step by step\) or at least 2"):
        ScheduledSampling(passes=1)


def test_masks_step_by_step_are_those_of_all_positions() -> None:
    drop, x = Dropout(0.5).train(), torch.ones(3, 4, 5)
    torch.manual_seed(1)
    with repeatable_noise():
        whole = [drop(x), drop(x)]
    noise, found = StepNoise(4), []
    with use_step_noise(noise):
        for t in range(4):
            found.append([drop(x[:, t : t + 1]), drop(x[:, t])[:, None]])
            noise.next()
    assert not torch.equal(*whole)
    for n in range(2):
        assert torch.equal(torch.cat([step[n] for step in found], 1), whole[n])
