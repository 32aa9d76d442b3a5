"""A training session: the loop's records are logged, validated, saved and shown."""

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
from regard.training.validation import finish, validate, validation_part
from regard.views.report import write_report

CHECKPOINT_SECONDS = 60.0
AGAIN_SECONDS = 1.0  # a second signal within this time is the first one's echo
VALIDATIONS = 10  # in a run, unless training.validate_every says otherwise


def train_run(run: Run, display: Display) -> bool:
    """Trains a run to its end, or until it is interrupted; True where it came to its end."""
    tune_malloc()
    display.start(run)
    examples = validation_part(run)
    last = None
    with catch_signals() as run.interrupted:
        log = Log(run, display)
        stop = False
        for record in records(run):
            log.add(record)
            stop = parallel.all_reduce_sum([len(run.interrupted)])[0] > 0
            if record.progress >= 1:
                break
            due = validation_due(run, record)
            if due or checkpoint_due(run, record) or stop:
                with log.pause():
                    if due:
                        log.write()
                        last = validate(run, examples)
                        display.validated(run, last)
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
        ):  # while it was validated
            save_and_stop(run, display)
            return False
    display.finished(run, finish(run, last))  # Ctrl-C ends this at once; --resume does it again
    return True


def records(run: Run) -> Iterator[StepRecord]:
    """The updates that are left: those of the loop, or a single one where there is a formula."""
    if run.state.finished or out_of_patience(run):
        return iter(())
    return train(run) if run.config.training.optimizer.stepwise else solve(run)


def save(run: Run) -> None:
    """A checkpoint of now."""
    run.read_clock()
    run.state.saved_seconds = run.state.seconds
    save_checkpoint(run)


def checkpoint_due(run: Run, record: StepRecord) -> bool:
    """Every `checkpoint_every` steps; with a budget and nothing said, every minute."""
    config = run.config.training
    if config.checkpoint_every:
        return record.step % config.checkpoint_every == 0
    return bool(config.budget) and record.seconds - run.state.saved_seconds >= CHECKPOINT_SECONDS


def validation_due(run: Run, record: StepRecord) -> bool:
    """Every `validate_every` steps, or ten times a run.

    With a budget, validation takes a thirtieth of the time at most.
    """
    every = run.config.training.validate_every
    if every:
        return record.step % every == 0
    state = run.state
    tenth = int(record.progress * VALIDATIONS)
    due = tenth > state.last_tenth
    state.last_tenth = tenth
    if run.config.training.budget:  # the first one late, since nobody knows yet what it costs
        return due and tenth >= 3 and record.seconds >= state.next_validation_at
    return due


def out_of_patience(run: Run) -> bool:
    """Whether the patience is over."""
    patience = run.config.training.patience
    return patience is not None and run.state.validations_without_gain >= patience


def save_and_stop(run: Run, display: Display) -> None:
    """Leaves the run so that it can be used and resumed."""
    if run.state.best_score is None:
        save_weights(run.model, run.folder / "model.safetensors")
    if parallel.is_main_process():
        write_report(run.folder)
    display.interrupted(run)
    parallel.barrier()  # else torchrun ends the one that still writes


@contextlib.contextmanager
def catch_signals() -> Iterator[list[int]]:
    """A list that is no longer empty once Ctrl-C or SIGTERM came; a later one stops at once.

    Under torchrun one Ctrl-C comes twice, from the terminal and from torchrun.
    """
    got: list[int] = []
    first = 0.0

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if got and time.monotonic() - first > AGAIN_SECONDS:
            raise KeyboardInterrupt
        first = first if got else time.monotonic()
        got.append(number)

    try:
        before = {n: signal.signal(n, note) for n in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread: nothing to catch there
        yield got
        return
    try:
        yield got
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
