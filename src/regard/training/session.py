"""A training session: the loop's records are logged, validated, saved and shown."""

import contextlib
import math
import random
import shutil
import signal
import time
from collections.abc import Iterator
from types import FrameType

import torch

from regard import metrics, parallel
from regard.data.read import Example
from regard.errors import UserError
from regard.evaluation import Evaluation, evaluate
from regard.files import write_json
from regard.report import write_report
from regard.training.checkpoint import save_checkpoint
from regard.training.log import Display, Log, Validated, append
from regard.training.loop import Record, share_done, solve, train
from regard.training.memory import keep_freed_memory
from regard.training.run import Run
from regard.training.update import calmer
from regard.training.weights import load_weights, save_weights

DIVERGED = 700.0  # nats a symbol; the perplexity, exp of it, is no number any more
CHECKPOINT_SECONDS = 60.0
AGAIN_SECONDS = 1.0  # a second signal within this time is the first one's echo
VALIDATIONS = 10  # in a run, unless training.validate_every says otherwise


def train_run(run: Run, display: Display) -> bool:
    """Trains a run to its end, or until it is interrupted; True where it came to its end."""
    keep_freed_memory()
    display.start(run)
    examples = validation_part(run)
    last = None
    with interruption() as run.interrupted:
        log = Log(run, display)
        stop = False
        for record in records(run):
            log.add(record)
            stop = parallel.total([len(run.interrupted)])[0] > 0
            if record.share >= 1:
                break
            due = validation_due(run, record)
            if due or checkpoint_due(run, record) or stop:
                with log.pause():
                    if due:
                        log.write()
                        last = validate(run, examples)
                        display.validated(run, last)
                    save(run)
            if stop or stalled(run):
                break
        if stop and share_done(run) < 1:
            interrupt(run, display)
            return False
        log.write()
        if run.progress.validated != run.progress.step:
            last = validate(run, examples)
            display.validated(run, last)
        run.progress.finished = True
        save_checkpoint(run)
        display.finished(run, finish(run, last))
    return True


def records(run: Run) -> Iterator[Record]:
    """The updates that are left: those of the loop, or a single one where there is a formula."""
    if run.progress.finished or stalled(run):
        return iter(())
    return solve(run) if run.config.training.optimizer.kind == "exact" else train(run)


def save(run: Run) -> None:
    """A checkpoint of now."""
    run.read_clock()
    run.progress.saved = run.progress.seconds
    save_checkpoint(run)


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
    progress, metric = run.progress, run.task.metric
    began = time.monotonic()
    run.average.validate(run.weights())
    with averaged(run):
        result = measured(run, examples)
        gain = _gain(run, result)
        if gain >= 0:  # of equals the later one, but only a gain renews the patience
            progress.best, progress.best_step = result.scores[metric], progress.step
            save_weights(run.model, run.folder / "model.safetensors")
    progress.pause_until = progress.seconds + 10 * parallel.agreed(time.monotonic() - began)
    progress.validated = progress.step
    progress.stale = 0 if gain > 0 else progress.stale + 1
    samples = run.task.samples(result, examples)
    record = {
        "kind": "dev",
        "step": progress.step,
        "loss": result.loss,
        "scores": result.scores,
        "examples": len(examples),
        "seconds": progress.seconds,
    }
    if parallel.first():
        append(run.folder, "metrics.jsonl", record)
        for sample in samples:
            append(run.folder, "samples.jsonl", {"step": progress.step, **sample})
        write_report(run.folder)
    return Validated(result, examples, gain >= 0, samples=samples)


def measured(run: Run, examples: list[Example]) -> Evaluation:
    """The model's scores, to which each process adds its share; refused where it diverged."""
    config = run.config
    with parallel.gathered(run.model):
        result = evaluate(run.task, run.model, examples, config.objective, config.search)
    limit = DIVERGED if "perplexity" in result.scores else math.inf
    if not result.loss < limit:
        raise UserError(
            f"step {run.progress.step}: the loss on the dev part is {result.loss:g}: training has "
            f"diverged, and this model was not kept. {calmer(run)}"
        )
    return result


def _gain(run: Run, result: Evaluation) -> float:
    """By how much the measure that decides is better than the best so far."""
    metric, best = run.task.metric, run.progress.best
    sign = 1 if metrics.HIGHER_IS_BETTER[metric] else -1
    return 1.0 if best is None else sign * (result.scores[metric] - best)


@contextlib.contextmanager
def averaged(run: Run) -> Iterator[None]:
    """In here the model has its averaged weights, where training keeps an average."""
    values, weights = run.average.values(), run.weights()
    if values is None:
        yield
        return
    trained = [weight.detach().clone() for weight in weights]
    with torch.no_grad():
        for weight, value in zip(weights, values, strict=True):
            weight.copy_(value)
        yield
        for weight, value in zip(weights, trained, strict=True):
            weight.copy_(value)


def stalled(run: Run) -> bool:
    """Whether the patience is over."""
    patience = run.config.training.patience
    return patience is not None and run.progress.stale >= patience


def finish(run: Run, last: Validated | None) -> Validated:
    """Scores the best model on the whole dev part, as `regard evaluate` does, and reports.

    The last validation will do where it was of the best model on the whole dev part.
    """
    parallel.wait()  # until the best model is written
    load_weights(run.model, run.folder / "model.safetensors")
    with parallel.gathered(run.model):
        calibrated = run.task.calibrate(run.model, run.dev)
    if calibrated:
        if parallel.first():
            run.task.save(run.folder)
        last = None
    if last is not None and last.best and last.examples is run.dev:
        result = last.evaluation
    else:
        result = measured(run, run.dev)
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
    if parallel.first():
        append(run.folder, "metrics.jsonl", record)
        write_json(run.folder / "scores.json", record)
        write_report(run.folder)
        shutil.rmtree(run.folder / "last.old", ignore_errors=True)  # nothing is left to do again
    return Validated(result, run.dev, True, intervals)


def interrupt(run: Run, display: Display) -> None:
    """Leaves the run so that it can be used and resumed."""
    if run.progress.best is None:
        save_weights(run.model, run.folder / "model.safetensors")
    if parallel.first():
        write_report(run.folder)
    display.interrupted(run)


@contextlib.contextmanager
def interruption() -> Iterator[list[int]]:
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
