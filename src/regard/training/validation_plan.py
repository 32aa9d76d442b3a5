"""The planned validations of a run with a time budget.

Progress by time stands still during a validation. The time of the validations to come is subtracted
from the budget, so the schedule has no jumps and ends with the budget.
"""

from dataclasses import dataclass

from regard.training.loop import StepRecord
from regard.training.run import Run

VALIDATIONS = 10  # per run, unless training.validate_every is set
FIRST_VALIDATION = 0.3  # progress at the first validation with a budget
PROBE = 0.1  # progress at which the duration of a validation is estimated
MAX_FRACTION = 1 / 3  # of the remaining time; longer validations are omitted
TRAINING_RATIO = 30  # training time between validations / validation time
ROUNDING = 0.1  # fraction of a period by which the last update may exceed it


@dataclass(frozen=True)
class ValidationPlan:
    """The validations until the end of the budget.

    first: progress at the next one; 1 if there is none, 0 if that is not decided yet.
    """

    count: int
    first: float
    seconds: float


def probe_due(run: Run, record: StepRecord) -> bool:
    """Return whether to estimate the duration of a validation, in a run with a budget.

    That is once or, if a validation seems to take too long, again when the model is better: the
    outputs of a new model may be as long as allowed.
    """
    training, state = run.config.training, run.state
    if not training.budget or training.validate_every or state.next_validation_at:
        return False
    return record.progress >= (FIRST_VALIDATION if state.planned_at else PROBE)


def update_plan(run: Run, record: StepRecord, duration: float | None = None) -> ValidationPlan:
    """Plan the rest of a run with a budget, and store the plan in its state.

    record: the last update before a pause that ends now. duration: estimate for a validation; None
    if the pause was one.
    """
    run.read_clock()
    training, state = run.config.training, run.state
    assert training.budget
    left = training.budget - state.seconds
    first = None if duration is None else max(record.progress, FIRST_VALIDATION)
    start = max(record.seconds, state.planned_at)  # a validation may follow an estimate at once
    duration = state.seconds - start if duration is None else duration
    by_time = state.time_fraction(training.budget, start)
    if training.validate_every:
        count = max(0, int(left / (state.seconds - state.planned_at)))
        plan = ValidationPlan(count, 0.0, count * duration)
    else:
        if record.progress > by_time:  # the run ends by steps or epochs, before the budget does
            left = min(left, record.seconds * (1 - record.progress) / record.progress)
        plan = plan_validations(record.progress, left, duration, first)
    state.planned_at, state.planned_progress = state.seconds, min(1.0, by_time)
    state.next_validation_at, state.reserved_seconds = plan.first, plan.seconds
    return plan


def plan_validations(
    progress: float, left: float, duration: float, first: float | None = None
) -> ValidationPlan:
    """Return the plan. left: seconds until the end of the run. duration: of a validation.

    first: progress at the first validation; None after a validation. Between two of them is at
    least a tenth of the run, and at least 30 times the duration of a validation.
    """
    if duration > MAX_FRACTION * left:
        return ValidationPlan(0, 0.0 if progress < FIRST_VALIDATION else 1.0, 0.0)
    if first is not None:
        training = left * (first - progress) / (1 - progress)
        later = plan_validations(first, left - training - duration, duration).count
        return ValidationPlan(1 + later, first, (1 + later) * duration)
    tenth = left / (1 - progress) / VALIDATIONS
    period = max(tenth, TRAINING_RATIO * duration) + duration
    periods = max(1, int((left + duration) / period + ROUNDING))
    following = progress + (1 - progress) / periods
    return ValidationPlan(periods - 1, following, (periods - 1) * duration)
