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
from regard.storage.weights import load_weights, save_weights
from regard.tasks.values import Evaluation
from regard.training.log import ValidationResult, append
from regard.training.run import Run
from regard.training.update import divergence_help
from regard.views.report import write_report

TRAINING_RATIO = 30  # with a budget: training time between validations / validation time
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

    The scored and saved weights are averaged, if training keeps an average.
    """
    state, metric = run.state, run.task.metric
    start = time.monotonic()
    run.average.validate(run.weights())
    with averaged(run):
        result = evaluate(run, examples)
        gain = _gain(run, result)
        if gain >= 0:  # of equal models keep the later; only a gain resets the patience
            state.best_score, state.best_step = result.scores[metric], state.step
            save_weights(run.model, run.folder / "model.safetensors")
    state.next_validation_at = state.seconds + TRAINING_RATIO * parallel.broadcast(
        time.monotonic() - start
    )
    state.validated_step = state.step
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
        write_report(run.folder)
    return ValidationResult(result, examples, gain >= 0, samples=samples)


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


def _predictor(run: Run) -> Predictor:
    return Predictor.of(run.task, run.config, run.model.eval(), run.folder)


def _gain(run: Run, result: Evaluation) -> float:
    """Return the gain of the selection metric over the best score (1.0 at the first validation)."""
    metric, best = run.task.metric, run.state.best_score
    sign = 1 if metrics.HIGHER_IS_BETTER[metric] else -1
    return 1.0 if best is None else sign * (result.scores[metric] - best)


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
            yield
        finally:
            for weight, value in zip(weights, originals, strict=True):
                weight.copy_(value)


def finish(run: Run, last: ValidationResult | None) -> ValidationResult:
    """Score the best model on the full dev set, as `regard evaluate` does, and write the report.

    The last validation is reused if it scored the best model on the full dev set and calibration
    changed nothing.
    """
    parallel.barrier()  # wait until the best model is written
    load_weights(run.model, run.folder / "model.safetensors")
    with parallel.unsharded(run.model):
        calibrated = run.task.calibrate(_predictor(run), run.dev)
    if calibrated:
        if parallel.is_main_process():
            run.task.save(run.folder)
        last = None
    if last is not None and last.best and last.examples is run.dev:
        result = last.evaluation
    else:
        result = evaluate(run, run.dev)
    intervals = run.task.intervals(result.predictions, run.dev)
    record = {
        "kind": "final",
        "step": run.state.best_step,
        "scores": result.scores,
        "intervals": intervals,
        "examples": len(run.dev),
        "details": result.details,
        "signatures": run.task.signatures(run.dev),
        "elapsed_seconds": run.state.seconds,
    }
    if parallel.is_main_process():
        append(run.folder, "metrics.jsonl", record)
        write_json(run.folder / "scores.json", record)
        write_report(run.folder)
        shutil.rmtree(run.folder / "checkpoint.prev", ignore_errors=True)  # the run is finished
    return ValidationResult(result, run.dev, True, intervals)
