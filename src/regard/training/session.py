"""A training session: the training loop with logging, validation, checkpoints and display."""

import contextlib
import signal
import time
from collections.abc import Iterator
from types import FrameType

from regard.core import parallel
from regard.core.memory import tune_malloc
from regard.storage.weights import save_weights
from regard.training.checkpoint import save_checkpoint
from regard.training.log import Display, Log
from regard.training.loop import StepRecord, progress_fraction, solve, train
from regard.training.run import Run
from regard.training.validation import estimate_seconds, finish, validate, validation_examples
from regard.training.validation_plan import FIRST_VALIDATION, VALIDATIONS, probe_due, update_plan
from regard.views.report import update_report

CHECKPOINT_SECONDS = 60.0
MIN_CHECKPOINT_SECONDS = 1.0  # between checkpoints of a run that validates very often
ECHO_SECONDS = 1.0  # a second signal within this time is an echo of the first


def train_run(run: Run, display: Display) -> bool:
    """Train a run until its end or an interruption; return whether it finished."""
    tune_malloc()
    display.start(run)
    examples = validation_examples(run)
    last = None
    with catch_signals() as run.interrupted:
        log = Log(run, display)
        stop = False
        for record in records(run):
            log.add(record)
            stop = parallel.all_reduce_sum([len(run.interrupted)])[0] > 0
            if record.progress >= 1:
                break
            if probe_due(run, record):
                with log.pause():
                    plan = update_plan(run, record, estimate_seconds(run, examples))
                if plan.first:
                    display.planned(run, plan)
            due = validation_due(run, record)
            if due or checkpoint_due(run, record) or stop:
                with log.pause():
                    if due:
                        log.write()
                        last = validate(run, examples)
                        display.validated(run, last)
                        if run.config.training.budget:
                            update_plan(run, record)
                    if not due or stop or not just_saved(run):
                        save(run)
            if stop or out_of_patience(run):
                break
        if stop and progress_fraction(run) < 1:
            save_and_stop(run, display)
            return False
        log.write()
        if run.state.validated_step != run.state.step:
            last = validate(run, examples)
            display.validated(run, last)
        run.state.finished = True
        save_checkpoint(run)
        if (
            parallel.all_reduce_sum([len(run.interrupted)])[0] and not stop
        ):  # interrupted during validation
            save_and_stop(run, display)
            return False
    display.finished(run, finish(run, last))  # Ctrl-C stops this at once; --resume repeats it
    return True


def records(run: Run) -> Iterator[StepRecord]:
    """Return an iterator over the remaining updates of the training loop or closed-form fit."""
    if run.state.finished or out_of_patience(run):
        return iter(())
    return train(run) if run.config.training.optimizer.stepwise else solve(run)


def save(run: Run) -> None:
    """Save a checkpoint and record the training time at which it was saved."""
    run.read_clock()
    run.state.saved_seconds = run.state.seconds
    save_checkpoint(run)


def checkpoint_due(run: Run, record: StepRecord) -> bool:
    """Return whether to save a checkpoint.

    That is every `checkpoint_every` steps or, if unset and with a time budget, every minute.
    """
    config = run.config.training
    if config.checkpoint_every:
        return record.step % config.checkpoint_every == 0
    return bool(config.budget) and record.seconds - run.state.saved_seconds >= CHECKPOINT_SECONDS


def just_saved(run: Run) -> bool:
    """Return whether the last checkpoint is so recent that a validation needs no other."""
    if run.config.training.checkpoint_every or not run.state.saved_seconds:
        return False
    return run.state.seconds - run.state.saved_seconds < MIN_CHECKPOINT_SECONDS


def validation_due(run: Run, record: StepRecord) -> bool:
    """Return whether to validate: every `validate_every` steps or, if unset, ten times per run.

    With a time budget, they are planned: see `plan_validations`.
    """
    every = run.config.training.validate_every
    if every:
        return record.step % every == 0
    state = run.state
    if run.config.training.budget:
        return record.progress >= (state.next_validation_at or FIRST_VALIDATION)
    tenth = int(record.progress * VALIDATIONS)
    due = tenth > state.last_tenth
    state.last_tenth = tenth
    return due


def out_of_patience(run: Run) -> bool:
    """Return whether training.patience is exhausted."""
    patience = run.config.training.patience
    return patience is not None and run.state.validations_without_gain >= patience


def save_and_stop(run: Run, display: Display) -> None:
    """Write the weights of an interrupted run, if no model is saved yet, and its report."""
    if run.state.best_score is None:
        save_weights(run.model, run.folder / "model.safetensors")
    if parallel.is_main_process():
        update_report(run.folder)
    display.interrupted(run)
    parallel.barrier()  # otherwise torchrun kills the process that still writes


@contextlib.contextmanager
def catch_signals() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM in a list inside the block; a second signal stops at once.

    Under torchrun one Ctrl-C arrives twice, from the terminal and from torchrun. A second signal
    within ECHO_SECONDS therefore does not stop the run at once.
    """
    received: list[int] = []
    first = 0.0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if received and time.monotonic() - first > ECHO_SECONDS:
            raise KeyboardInterrupt
        first = first if received else time.monotonic()
        received.append(number)

    try:
        before = {n: signal.signal(n, handle) for n in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # only the main thread receives signals
        yield received
        return
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
