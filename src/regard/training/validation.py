"""Validation: scores of the model during training, the best model, and the final scores."""

import contextlib
import math
import random
import shutil
import time
from collections.abc import Iterator

import torch

from regard import metrics
from regard.core import parallel
from regard.core.errors import UserError
from regard.core.files import write_json
from regard.data.reading.read import Example
from regard.inference.predictor import Predictor
from regard.storage.baseline_file import write_baselines
from regard.storage.weights import load_weights, save_weights
from regard.tasks.baselines import BaselineResults, fit_baselines, score_baselines
from regard.tasks.values import Evaluation
from regard.training.log import ValidationResult, append
from regard.training.loop import progress_fraction
from regard.training.run import Run
from regard.training.search_tuning import save_tuning, tune_search
from regard.training.statistics import recomputed_statistics
from regard.training.update import divergence_help
from regard.views.report import update_report

PROBE_EXAMPLES = 32  # to estimate the duration of a validation
FINAL_TOLERANCE = 0.5  # standard errors by which the final model may be worse than the best
MAX_DECAYED = 0.5  # factor of the learning rate at the end of a run, below which it has decayed
MIN_REPORT_SECONDS = 1.0  # between reports of a run that validates very often
MAX_LOSS = 700.0  # nats per token; above it the perplexity overflows


def validation_examples(run: Run) -> list[Example]:
    """Return the dev examples used during training: all, or a fixed random sample."""
    limit = run.config.training.validation_examples
    if len(run.dev) <= limit:
        return run.dev
    indices = random.Random(0).sample(range(len(run.dev)), k=limit)
    return [run.dev[i] for i in sorted(indices)]


def validate(run: Run, examples: list[Example]) -> ValidationResult:
    """Score the model and log the result; save the model if it is the best so far.

    At the end of training, also save it if it is at most half a standard error worse. The scored
    and saved weights are averaged, if training keeps an average.
    """
    state, metric = run.state, run.task.metric
    start = time.monotonic()
    run.average.validate(run.weights())
    with averaged(run):
        result = evaluate(run, examples)
        gain = _gain(run, result)
        saved = _saved(run, gain, len(examples))
        if saved:
            state.best_score, state.best_step = result.scores[metric], state.step
            save_weights(run.model, run.folder / "model.safetensors")
    state.validation_seconds = parallel.broadcast(time.monotonic() - start)
    state.validated_step = state.step
    # only a gain resets the patience
    state.validations_without_gain = 0 if gain > 0 else state.validations_without_gain + 1
    samples = run.task.samples(result, examples)
    record = {
        "kind": "dev",
        "step": state.step,
        "loss": result.loss,
        "scores": result.scores,
        "examples": len(examples),
        "elapsed_seconds": state.seconds,
    }
    if parallel.is_main_process():
        append(run.folder, "metrics.jsonl", record)
        for sample in samples:
            append(run.folder, "samples.jsonl", {"step": state.step, **sample})
        if run.reported_at is None or state.seconds - run.reported_at >= MIN_REPORT_SECONDS:
            run.reported_at = state.seconds
            update_report(run.folder)
    return ValidationResult(result, examples, saved, samples=samples)


def evaluate(run: Run, examples: list[Example]) -> Evaluation:
    """Score the model, with examples divided among processes; raise UserError if it diverged."""
    with parallel.unsharded(run.model):
        result = _predictor(run).evaluate(examples)
    limit = MAX_LOSS if "perplexity" in result.scores else math.inf
    if not result.loss < limit:
        raise UserError(
            f"step {run.state.step}: training diverged (dev loss {result.loss:g}); model not saved",
            help=divergence_help(run),
        )
    return result


def estimate_seconds(run: Run, examples: list[Example]) -> float:
    """Return the estimated duration of a validation, from some of its examples."""
    some = examples[:: -(-len(examples) // PROBE_EXAMPLES)]
    start = time.monotonic()
    with parallel.unsharded(run.model):
        _predictor(run).evaluate(some)
    return parallel.broadcast(time.monotonic() - start) * len(examples) / len(some)


def _predictor(run: Run) -> Predictor:
    return Predictor.of(run.task, run.config, run.model.eval(), run.folder)


def _gain(run: Run, result: Evaluation) -> float:
    """Return the gain of the selection metric over the best score (1.0 at the first validation)."""
    metric, best = run.task.metric, run.state.best_score
    sign = 1 if metrics.HIGHER_IS_BETTER[metric] else -1
    return 1.0 if best is None else sign * (result.scores[metric] - best)


def _saved(run: Run, gain: float, examples: int) -> str:
    """Return why to save the model; empty to keep an earlier model.

    Of equal models, the later is saved. A maximum over noisy scores prefers lucky models, so the
    last model, if its learning rate has decayed, wins unless an earlier one is clearly better.
    """
    if gain >= 0:
        return "best so far"
    best = run.state.best_score
    assert best is not None
    error = metrics.standard_error(run.task.metric, best, examples)
    schedule = run.config.training.schedule
    decayed = schedule.factor(1.0, run.state.step) < MAX_DECAYED
    if decayed and progress_fraction(run) >= 1 and -gain <= FINAL_TOLERANCE * error:
        return "final model, within half a standard error of the best"
    return ""


@contextlib.contextmanager
def averaged(run: Run) -> Iterator[None]:
    """Use averaged weights inside the block, if training keeps an average."""
    values, weights = run.average.values(), run.weights()
    if values is None:
        yield
        return
    originals = [weight.detach().clone() for weight in weights]
    with torch.no_grad():
        for weight, value in zip(weights, values, strict=True):
            weight.copy_(value)
        try:
            with recomputed_statistics(run):
                yield
        finally:
            for weight, value in zip(weights, originals, strict=True):
                weight.copy_(value)


def finish(run: Run, last: ValidationResult | None) -> ValidationResult:
    """Tune the search, score the best model as `regard evaluate` does, and write the report.

    The last validation is reused if it scored the best model on the full dev set, and neither
    calibration nor the tuning of the search changed anything.
    """
    parallel.barrier()  # wait until the best model is written
    load_weights(run.model, run.folder / "model.safetensors")
    with parallel.unsharded(run.model):
        calibrated = run.task.calibrate(_predictor(run), run.dev)
    if calibrated:
        if parallel.is_main_process():
            run.task.save(run.folder)
        last = None
    tuned = tune_search(run, validation_examples(run))
    if tuned:
        last = None
    if last is not None and last.saved and last.examples is run.dev:
        result = last.evaluation
    else:
        result = evaluate(run, run.dev)
    intervals = run.task.intervals(result.predictions, run.dev)
    baselines = dev_baselines(run) if parallel.is_main_process() else BaselineResults()
    record = {
        "kind": "final",
        "step": run.state.best_step,
        "scores": result.scores,
        "intervals": intervals,
        "examples": len(run.dev),
        "details": result.details,
        "signatures": run.task.signatures(run.dev),
        "baselines": baselines.as_list(),
        "baseline_notes": baselines.notes,
        "elapsed_seconds": run.state.seconds,
    }
    if parallel.is_main_process():
        if tuned:
            save_tuning(run, tuned)
        append(run.folder, "metrics.jsonl", record)
        write_json(run.folder / "scores.json", record)
        update_report(run.folder)
        shutil.rmtree(run.folder / "checkpoint.prev", ignore_errors=True)  # the run is finished
    return ValidationResult(result, run.dev, "best", intervals, tuned=tuned, baselines=baselines)


def dev_baselines(run: Run) -> BaselineResults:
    """Fit the baselines, store them in the run folder, and return their scores on the dev set."""
    pairs, sample = run.baseline_data
    notes = [f"baselines: {sample}"] if sample else []
    fitted = fit_baselines(run.task, run.task.baseline_fits(), pairs, notes)
    try:
        write_baselines(run.folder, fitted, sample)
    except UnicodeError:  # lone surrogates, from Python
        notes.append("baselines: not stored: the training data is not valid Unicode")
    return score_baselines(run.task, fitted, run.dev, run.config.objective, notes)
