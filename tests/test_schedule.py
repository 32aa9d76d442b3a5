"""Schedules, worked out by hand, and the limits of a run that they follow."""

import math
from itertools import pairwise
from types import SimpleNamespace

import pytest

from regard.config.load import check_config
from regard.core.errors import UserError
from regard.optim.schedules import (
    Constant,
    Cosine,
    Exponential,
    InverseRoot,
    LinearSchedule,
    Schedule,
    StepDecay,
    WarmupStableDecay,
    WithWarmup,
)
from regard.optim.training_options import Training
from regard.training.loop import progress_fraction
from regard.training.run import TrainingState

ALL = Schedule.__origin__.__args__
STEPS = 1000


def curve(schedule: WithWarmup, steps: int = STEPS) -> list[float]:
    """The factor of each update of a run of a number of steps."""
    return [schedule.factor(step / steps, step) for step in range(steps)]


@pytest.mark.parametrize("kind", ALL)
def test_warm_up_over_a_share(kind: type[WithWarmup]) -> None:
    """A warm-up of a fifth: half-way up after a tenth, at the top after a fifth."""
    schedule = kind(warmup=0.2)
    assert schedule.factor(0.05, 3) == pytest.approx(0.25)
    assert schedule.factor(0.1, 7) == pytest.approx(0.5)
    assert schedule.factor(0.2, 14) == pytest.approx(1.0)
    assert 0 < schedule.factor(0.0, 0) < 0.01


@pytest.mark.parametrize("kind", ALL)
def test_warm_up_over_steps(kind: type[WithWarmup]) -> None:
    """A warm-up of four steps: 1/4, 2/4, 3/4."""
    schedule = kind(warmup=4)
    assert [schedule.factor(0.0, step) for step in range(3)] == [0.25, 0.5, 0.75]
    assert schedule.factor(0.0, 3) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ALL)
def test_without_warm_up_it_begins_at_the_top(kind: type[WithWarmup]) -> None:
    assert kind(warmup=0).factor(0.0, 0) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("warmup", [0, 0.05, 0.5, 3, 300])
def test_never_above_one_nor_below_zero_and_never_back_up(
    kind: type[WithWarmup], warmup: float
) -> None:
    schedule = kind(warmup=warmup)
    factors = curve(schedule)
    assert all(0 <= factor <= 1 for factor in factors)
    assert max(factors) > 0.99
    top = factors.index(max(factors))
    assert factors[: top + 1] == sorted(factors[: top + 1])
    for now, later in pairwise(factors[top:]):
        assert later <= now + 1e-12
    assert schedule.factor(1.5, 2000) == schedule.factor(1.0, 2000)  # beyond the end is the end
    assert curve(schedule) == factors  # nothing is remembered


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("warmup", [0.1, 0.3, 100, 300])
def test_no_jump_where_the_warm_up_ends(kind: type[WithWarmup], warmup: float) -> None:
    """Nor anywhere else, but where a step is meant."""
    factors = curve(kind(warmup=warmup))
    end = int(warmup if warmup >= 1 else warmup * STEPS)
    jumps = [abs(now - later) for now, later in pairwise(factors)]
    around = jumps[: end + 50] if kind is StepDecay else jumps
    assert max(around) < 0.03


@pytest.mark.parametrize("kind", [Constant, StepDecay, Exponential, InverseRoot])
def test_a_cooldown_ends_at_zero(kind: type[WithWarmup]) -> None:
    """The last fifth falls in a line; what came before is as it was."""
    plain, cooled = kind(), kind(cooldown=0.2)
    for share in (0.02, 0.3, 0.8):
        step = int(share * STEPS)
        assert cooled.factor(share, step) == pytest.approx(plain.factor(share, step))
    assert cooled.factor(0.9, 900) == pytest.approx(plain.factor(0.9, 900) / 2)
    assert cooled.factor(1.0, STEPS) == 0 < plain.factor(1.0, STEPS)


@pytest.mark.parametrize("kind", [LinearSchedule, Cosine, WarmupStableDecay, Exponential])
@pytest.mark.parametrize("final_factor", [0.05, 0.5])
def test_the_final_factor_is_reached(kind: type[WithWarmup], final_factor: float) -> None:
    schedule = kind(final_factor=final_factor)
    assert schedule.factor(1.0, STEPS) == pytest.approx(final_factor)
    assert min(curve(schedule)[100:]) >= final_factor


@pytest.mark.parametrize(
    ("schedule", "share", "step", "factor"),
    [
        (Constant(warmup=0.2), 0.7, 70, 1.0),
        (Constant(warmup=0.2), 1.0, 99, 1.0),
        # after the warm-up 0.8 of the run is left
        (LinearSchedule(warmup=0.2), 0.6, 60, 0.5),
        (LinearSchedule(warmup=0.2), 0.8, 80, 0.25),
        (LinearSchedule(warmup=0.2), 1.0, 99, 0.0),
        (LinearSchedule(warmup=0.2, final_factor=0.1), 0.6, 60, 0.55),
        # a warm-up of steps 0 to 10, a tenth of the run: 0.9 is left of it
        (LinearSchedule(warmup=11), 0.55, 55, 0.5),
        (LinearSchedule(warmup=11), 0.1, 10, 1.0),
        # (1 + cos pi x) / 2 at x = 1/2, 1/3, 2/3, 1
        (Cosine(warmup=0.2), 0.6, 60, 0.5),
        (Cosine(warmup=0.0), 1 / 3, 33, 0.75),
        (Cosine(warmup=0.0), 2 / 3, 67, 0.25),
        (Cosine(warmup=0.2), 1.0, 99, 0.0),
        # sqrt(warm-up / now), in steps or in shares
        (InverseRoot(warmup=4), 0.5, 15, 0.5),
        (InverseRoot(warmup=4), 0.5, 35, 1 / 3),
        (InverseRoot(warmup=0.04), 0.16, 7, 0.5),
        (InverseRoot(warmup=0.04), 0.36, 7, 1 / 3),
        # a tenth, a hundredth
        (StepDecay(), 0.49, 49, 1.0),
        (StepDecay(), 0.5, 50, 0.1),
        (StepDecay(), 0.75, 75, 0.01),
        (StepDecay(milestones=[0.3], gamma=0.5), 0.9, 90, 0.5),
        # the square root of what it ends at, half-way
        (Exponential(warmup=0.0, final_factor=0.01), 0.5, 50, 0.1),
        (Exponential(warmup=0.2, final_factor=0.0625), 0.6, 60, 0.25),
        (Exponential(warmup=0.2, final_factor=0.0625), 1.0, 99, 0.0625),
        # at the top until the last fifth
        (WarmupStableDecay(), 0.8, 80, 1.0),
        (WarmupStableDecay(), 0.9, 90, 0.5),
        (WarmupStableDecay(), 1.0, 99, 0.0),
        (WarmupStableDecay(decay_fraction=0.4, final_factor=0.5), 0.8, 80, 0.75),
        # 1 - sqrt(x) of a quarter
        (WarmupStableDecay(decay_fraction=0.4, shape="root"), 0.7, 70, 0.5),
    ],
    ids=str,
)
def test_by_hand(schedule: WithWarmup, share: float, step: int, factor: float) -> None:
    assert schedule.factor(share, step) == pytest.approx(factor, abs=1e-9)


@pytest.mark.parametrize("milestones", [[0.75, 0.5], [0.5, 0.5], [0.0], [1.0], [1000]])
def test_drops_out_of_order_or_out_of_the_run(milestones: list[float]) -> None:
    with pytest.raises(UserError, match=r"training\.schedule\.milestones"):
        check_config(
            {"training": {"schedule": {"kind": "step", "milestones": milestones}}}, "settings"
        )


def run_of(training: Training, **progress: float) -> SimpleNamespace:
    """As much of a run as `progress_fraction` attends to."""
    config = SimpleNamespace(training=training)
    return SimpleNamespace(config=config, state=TrainingState(**progress), epoch_batches=20)


@pytest.mark.parametrize(
    ("limits", "progress", "share"),
    [
        ({"steps": 10}, {"step": 4}, 0.4),
        ({"steps": 10}, {"step": 12}, 1.0),
        ({"epochs": 4}, {"epoch": 1, "position": 10}, 0.375),
        ({"epochs": 0.5}, {"epoch": 0, "position": 5}, 0.5),
        ({"budget": "10m"}, {"seconds": 150.0}, 0.25),
        ({"budget": "10m", "steps": 100}, {"seconds": 150.0, "step": 60}, 0.6),
        ({"budget": "10m", "steps": 100}, {"seconds": 550.0, "step": 10}, 550 / 600),
        ({}, {"step": 5, "epoch": 2, "seconds": 50.0}, 0.0),
    ],
)
def test_the_limit_that_comes_first_decides(limits: dict, progress: dict, share: float) -> None:
    assert progress_fraction(run_of(Training(**limits), **progress)) == pytest.approx(share)


def test_annealed_when_the_time_is_over() -> None:
    """However many steps the time allowed: at 90 % of the time the rate is low, at 100 % zero."""
    training = Training(budget="2m")
    rates = [
        training.schedule.factor(progress_fraction(run_of(training, seconds=s, step=7)), 7)
        for s in (60.0, 108.0, 120.0)
    ]
    assert rates[0] > 0.5 and rates[1] < 0.05 and math.isclose(rates[2], 0.0, abs_tol=1e-12)
