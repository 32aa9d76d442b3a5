"""Schedules, worked out by hand, and the limits of a run that they follow."""

import math
from types import SimpleNamespace

import pytest

from regard.training.checkpoint import Progress
from regard.training.loop import share_done
from regard.training.options import Training
from regard.training.schedule import Constant, Cosine, InverseRoot, Linear, Schedule

ALL = [Constant, InverseRoot, Linear, Cosine]


def test_all_kinds_are_here() -> None:
    assert set(Schedule.__origin__.__args__) == set(ALL)


@pytest.mark.parametrize("kind", ALL)
def test_warm_up_over_a_share(kind: type) -> None:
    """A warm-up of a fifth: half-way up after a tenth, at the top after a fifth."""
    schedule = kind(warmup=0.2)
    assert schedule.factor(0.05, 3) == pytest.approx(0.25)
    assert schedule.factor(0.1, 7) == pytest.approx(0.5)
    assert schedule.factor(0.2, 14) == pytest.approx(1.0)
    assert 0 < schedule.factor(0.0, 0) < 0.01


@pytest.mark.parametrize("kind", ALL)
def test_warm_up_over_steps(kind: type) -> None:
    """A warm-up of four steps: 1/4, 2/4, 3/4."""
    schedule = kind(warmup=4)
    assert [schedule.factor(0.0, step) for step in range(3)] == [0.25, 0.5, 0.75]
    assert schedule.factor(0.0, 3) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ALL)
def test_without_warm_up_it_begins_at_the_top(kind: type) -> None:
    assert kind(warmup=0).factor(0.0, 0) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("warmup", [0, 0.05, 0.5, 3])
def test_never_above_one_nor_below_zero_and_never_back_up(kind: type, warmup: float) -> None:
    schedule = kind(warmup=warmup)
    factors = [schedule.factor(step / 100, step) for step in range(101)]
    assert all(0 <= factor <= 1 for factor in factors)
    top = factors.index(max(factors))
    assert factors[: top + 1] == sorted(factors[: top + 1])
    assert factors[top:] == sorted(factors[top:], reverse=True)
    assert schedule.factor(1.5, 200) == schedule.factor(1.0, 200)  # beyond the end is the end


@pytest.mark.parametrize(
    ("schedule", "share", "step", "factor"),
    [
        (Constant(warmup=0.2), 0.7, 70, 1.0),
        (Constant(warmup=0.2), 1.0, 99, 1.0),
        # after the warm-up 0.8 of the run is left
        (Linear(warmup=0.2), 0.6, 60, 0.5),
        (Linear(warmup=0.2), 0.8, 80, 0.25),
        (Linear(warmup=0.2), 1.0, 99, 0.0),
        (Linear(warmup=10), 0.5, 50, 0.5),
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
    ],
    ids=str,
)
def test_by_hand(schedule: Constant, share: float, step: int, factor: float) -> None:
    assert schedule.factor(share, step) == pytest.approx(factor, abs=1e-9)


def run_of(training: Training, **progress: float) -> SimpleNamespace:
    """As much of a run as `share_done` looks at."""
    config = SimpleNamespace(training=training)
    return SimpleNamespace(config=config, progress=Progress(**progress), epoch_batches=20)


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
    assert share_done(run_of(Training(**limits), **progress)) == pytest.approx(share)


def test_annealed_when_the_time_is_over() -> None:
    """However many steps the time allowed: at 90 % of the time the rate is low, at 100 % zero."""
    training = Training(budget="2m")
    rates = [
        training.schedule.factor(share_done(run_of(training, seconds=s, step=7)), 7)
        for s in (60.0, 108.0, 120.0)
    ]
    assert rates[0] > 0.5 and rates[1] < 0.05 and math.isclose(rates[2], 0.0, abs_tol=1e-12)
