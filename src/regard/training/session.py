"""A training session: the loop's records are logged, validated, saved and shown."""

import contextlib
import math
import random
import signal
import time
from collections.abc import Iterator
from types import FrameType

from regard import metrics
from regard.data.read import Example
from regard.errors import UserError
from regard.evaluation import evaluate
from regard.files import write_json
from regard.report import write_report
from regard.training.checkpoint import load_weights, save_checkpoint, save_weights
from regard.training.log import Display, Log, Validated, append
from regard.training.loop import Record, calmer, share_done, solve, train
from regard.training.memory import keep_freed_memory
from regard.training.run import Run

DIVERGED = 700.0  # nats a symbol; the perplexity, exp of it, is no number any more
CHECKPOINT_SECONDS = 60.0
VALIDATIONS = 10  # in a run, unless training.validate_every says otherwise


def train_run(run: Run, display: Display) -> bool:
    """Trains a run to its end, or until it is interrupted; True where it came to its end."""
    keep_freed_memory()
    display.start(run)
    examples = validation_part(run)
    last = None
    with interruption() as stop, Log(run, display) as log:
        for record in records(run):
            log.add(record)
            if record.share >= 1:
                break
            due = validation_due(run, record)
            if due or checkpoint_due(run, record) or stop:
                with log.pause():
                    if due:
                        last = validate(run, examples)
                        display.validated(run, last)
                    save(run)
            if stop or stalled(run):
                break
    if stop and share_done(run) < 1:
        interrupt(run, display)
        return False
    if run.progress.validated != run.progress.step:
        last = validate(run, examples)
        display.validated(run, last)
    run.progress.finished = True
    save_checkpoint(run.folder, run.model, run.optimizer, run.progress, run.carry)
    display.finished(run, finish(run, last))
    return True


def records(run: Run) -> Iterator[Record]:
    """The updates that are left: those of the loop, or a single one where there is a formula."""
    if run.progress.finished:
        return iter(())
    return solve(run) if run.config.training.optimizer.kind == "exact" else train(run)


def save(run: Run) -> None:
    """A checkpoint of now."""
    run.read_clock()
    run.progress.saved = run.progress.seconds
    save_checkpoint(run.folder, run.model, run.optimizer, run.progress, run.carry)


def checkpoint_due(run: Run, record: Record) -> bool:
    """Every `checkpoint_every` steps; with a budget and nothing said, every minute."""
    config = run.config.training
    if config.checkpoint_every:
        return record.step % config.checkpoint_every == 0
    return bool(config.budget) and record.seconds - run.progress.saved >= CHECKPOINT_SECONDS


def validation_part(run: Run) -> list[Example]:
    """The dev examples used while training: all, or a fixed random part of many."""
    most = run.config.training.validate_on
    if len(run.dev) <= most:
        return run.dev
    places = random.Random(0).sample(range(len(run.dev)), k=most)
    return [run.dev[i] for i in sorted(places)]


def validation_due(run: Run, record: Record) -> bool:
    """Every `validate_every` steps, or ten times a run.

    With a budget, validation takes a tenth of the time at most.
    """
    every = run.config.training.validate_every
    if every:
        return record.step % every == 0
    progress = run.progress
    tenth = int(record.share * VALIDATIONS)
    due = tenth > progress.tenth
    progress.tenth = tenth
    if run.config.training.budget:  # the first one late, since nobody knows yet what it costs
        return due and tenth >= 3 and record.seconds >= progress.pause_until
    return due


def validate(run: Run, examples: list[Example]) -> Validated:
    """Scores the model as it is; the best one so far becomes `model.safetensors`."""
    config, progress, metric = run.config, run.progress, run.task.metric
    began = time.monotonic()
    result = evaluate(run.task, run.model, examples, config.objective, config.search)
    limit = DIVERGED if "perplexity" in result.scores else math.inf
    if not result.loss < limit:
        raise UserError(
            f"step {progress.step}: the loss on the dev part is {result.loss:g}: training has "
            f"diverged, and this model was not kept. {calmer(run)}"
        )
    progress.pause_until = progress.seconds + 10 * (time.monotonic() - began)
    sign = 1 if metrics.HIGHER_IS_BETTER[metric] else -1
    value = result.scores[metric]
    gain = 1.0 if progress.best is None else sign * (value - progress.best)
    better = gain >= 0  # of equals the later one, but only a gain renews the patience
    progress.validated = progress.step
    progress.stale = 0 if gain > 0 else progress.stale + 1
    if better:
        progress.best, progress.best_step = value, progress.step
        save_weights(run.model, run.folder / "model.safetensors")
    samples = run.task.samples(result, examples)
    validated = Validated(result, examples, better, samples=samples)
    append(
        run.folder,
        "metrics.jsonl",
        {
            "kind": "dev",
            "step": progress.step,
            "loss": result.loss,
            "scores": result.scores,
            "examples": len(examples),
            "seconds": progress.seconds,
        },
    )
    for sample in samples:
        append(run.folder, "samples.jsonl", {"step": progress.step, **sample})
    write_report(run.folder)
    return validated


def stalled(run: Run) -> bool:
    """Whether the patience is over."""
    patience = run.config.training.patience
    return patience is not None and run.progress.stale >= patience


def finish(run: Run, last: Validated | None) -> Validated:
    """Scores the best model on the whole dev part, as `regard evaluate` does, and reports.

    The last validation will do where it was of the best model on the whole dev part.
    """
    load_weights(run.model, run.folder / "model.safetensors")
    config = run.config
    if run.task.calibrate(run.model, run.dev):
        run.task.save(run.folder)
        last = None
    if last is not None and last.best and last.examples is run.dev:
        result = last.evaluation
    else:
        result = evaluate(run.task, run.model, run.dev, config.objective, config.search)
    intervals = run.task.intervals(result.predictions, run.dev)
    record = {
        "kind": "final",
        "step": run.progress.best_step,
        "scores": result.scores,
        "intervals": intervals,
        "examples": len(run.dev),
        "details": result.details,
        "signatures": run.task.signatures(run.dev),
        "seconds": run.progress.seconds,
    }
    append(run.folder, "metrics.jsonl", record)
    write_json(run.folder / "scores.json", record)
    write_report(run.folder)
    return Validated(result, run.dev, True, intervals)


def interrupt(run: Run, display: Display) -> None:
    """Leaves the run so that it can be used and resumed."""
    if run.progress.best is None:
        save_weights(run.model, run.folder / "model.safetensors")
    write_report(run.folder)
    display.interrupted(run)


@contextlib.contextmanager
def interruption() -> Iterator[list[int]]:
    """A list that is no longer empty once Ctrl-C or SIGTERM came; a second one stops at once."""
    got: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if got:
            raise KeyboardInterrupt
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
