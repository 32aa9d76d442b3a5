"""Validations that are planned within a time budget: the schedule has no jumps and ends with it."""

from types import SimpleNamespace

import pytest

from regard.optim.training_options import Training
from regard.training.display import PlainDisplay
from regard.training.loop import progress_fraction
from regard.training.run import TrainingState
from regard.training.session import validation_due
from regard.training.validation_plan import (
    ValidationPlan,
    plan_validations,
    probe_due,
    update_plan,
)

BUDGET, UPDATE = 600.0, 0.5  # seconds


class Clocked(SimpleNamespace):
    """A run without a model, whose clock the test sets."""

    def read_clock(self) -> None:
        self.state.seconds = self.now


def run_of(**settings: object) -> Clocked:
    config = SimpleNamespace(training=Training(budget=BUDGET, **settings))
    return Clocked(config=config, state=TrainingState(), epoch_batches=10**9, now=0.0)


def simulate(run: Clocked, validation: float, estimate: float, probe: float = 1.0) -> dict:
    """Train as `train_run` does; return the progress at each update and at each validation."""
    seen: dict = {"progress": [], "validated": [], "planned": None, "probes": 0}
    while (progress := progress_fraction(run)) < 1:
        run.now += UPDATE
        run.state.step += 1
        run.read_clock()
        record = SimpleNamespace(
            step=run.state.step, seconds=run.now, progress=progress_fraction(run)
        )
        seen["progress"].append(progress)
        if record.progress >= 1:
            break
        if probe_due(run, record):
            run.now += probe
            seen["probes"] += 1
            seen["planned"] = update_plan(run, record, estimate / seen["probes"])
        if validation_due(run, record):
            seen["validated"].append(record.progress)
            run.now += validation
            update_plan(run, record)
            assert progress_fraction(run) == pytest.approx(record.progress)
    return seen


@pytest.mark.parametrize("validation", [0.01, 2.0, 15.0, 60.0])
@pytest.mark.parametrize("error", [0.25, 1.0, 3.0])
def test_the_schedule_has_no_jumps_and_ends_with_the_budget(
    validation: float, error: float
) -> None:
    run = run_of()
    seen = simulate(run, validation, validation * error)
    assert run.now == pytest.approx(BUDGET, abs=UPDATE)
    steps = [b - a for a, b in zip(seen["progress"], seen["progress"][1:], strict=False)]
    assert min(steps) > 0 and max(steps) < 2 * UPDATE / (BUDGET - 3 * validation * max(1, error))
    assert seen["progress"][-1] > 1 - max(steps) - 1e-9
    assert seen["validated"] and seen["validated"][0] == pytest.approx(0.3, abs=0.01)


def test_cheap_validations_are_seven_and_expensive_ones_few() -> None:
    cheap, expensive = simulate(run_of(), 0.01, 0.01), simulate(run_of(), 15.0, 15.0)
    assert [round(p, 1) for p in cheap["validated"]] == [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert cheap["planned"].count == 7
    assert len(expensive["validated"]) == expensive["planned"].count == 1
    assert expensive["planned"].seconds == 15.0


def test_between_validations_is_thirty_times_as_much_training() -> None:
    seen = simulate(run_of(), 3.0, 3.0)
    gaps = [b - a for a, b in zip(seen["validated"], seen["validated"][1:], strict=False)]
    assert gaps and min(gaps) * (BUDGET - 3.0 * seen["planned"].count) >= 0.98 * 30 * 3.0


def test_a_validation_longer_than_a_third_of_the_rest_is_omitted() -> None:
    run = run_of()
    seen = simulate(run, 400.0, 400.0)
    assert seen["validated"] == [] and seen["planned"] == ValidationPlan(0, 1.0, 0.0)
    assert seen["probes"] == 2 and run.now == pytest.approx(BUDGET, abs=UPDATE)


def test_a_new_model_may_be_slow_and_is_timed_again() -> None:
    """The second estimate is half of the first, and close to the truth."""
    seen = simulate(run_of(), 120.0, 240.0)
    assert seen["probes"] == 2 and seen["validated"] == [pytest.approx(0.3, abs=0.01)]


def test_a_run_that_ends_by_steps_is_validated_by_its_own_length() -> None:
    seen = simulate(run_of(steps=100), 0.01, 0.01)
    assert [round(p, 1) for p in seen["validated"]] == [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    slow = simulate(run_of(steps=100), 2.0, 2.0, probe=0.1)
    assert [round(p, 1) for p in slow["validated"]] == [0.3]


def test_validations_every_hundred_steps() -> None:
    run = run_of(validate_every=100)
    seen = simulate(run, 12.0, 12.0)
    assert run.now == pytest.approx(BUDGET, abs=UPDATE)
    assert len(seen["validated"]) == int(BUDGET / (100 * UPDATE + 12.0))
    assert seen["planned"] is None


def test_no_time_left() -> None:
    assert plan_validations(0.9, -5.0, 1.0) == ValidationPlan(0, 1.0, 0.0)
    state = TrainingState(planned_at=700.0, planned_progress=0.5)
    assert state.time_fraction(600.0, 701.0) == 1.0


@pytest.mark.parametrize(
    ("plan", "line"),
    [
        (ValidationPlan(1, 0.3, 2.0), "validation: about 1 time, 2 s of the 10 min 00 s"),
        (ValidationPlan(4, 0.3, 21.3), "validation: about 4 times, 21 s of the 10 min 00 s"),
        (
            ValidationPlan(0, 1.0, 0.0),
            "validation: only after the 10 min 00 s, since it takes long",
        ),
    ],
)
def test_the_plan_is_printed(
    plan: ValidationPlan, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    PlainDisplay().planned(run_of(), plan)  # type: ignore[arg-type]
    assert capsys.readouterr().err == f"{line}\n"
