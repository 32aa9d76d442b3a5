"""Validation: the model is scored as it is, the best one is kept, and the last word is said."""

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

RARELY = 30  # with a budget: as many times as long as it takes goes by between validations
DIVERGED = 700.0  # nats a token; the perplexity, exp of it, is no number any more


def validation_part(run: Run) -> list[Example]:
    """The dev examples used while training: all, or a fixed random part of many."""
    most = run.config.training.validation_examples
    if len(run.dev) <= most:
        return run.dev
    places = random.Random(0).sample(range(len(run.dev)), k=most)
    return [run.dev[i] for i in sorted(places)]


def validate(run: Run, examples: list[Example]) -> ValidationResult:
    """Scores the model as it is; the best one so far becomes `model.safetensors`."""
    state, metric = run.state, run.task.metric
    began = time.monotonic()
    run.average.validate(run.weights())
    with averaged(run):
        result = measured(run, examples)
        gain = _gain(run, result)
        if gain >= 0:  # of equals the later one, but only a gain renews the patience
            state.best_score, state.best_step = result.scores[metric], state.step
            save_weights(run.model, run.folder / "model.safetensors")
    state.next_validation_at = state.seconds + RARELY * parallel.broadcast(time.monotonic() - began)
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


def measured(run: Run, examples: list[Example]) -> Evaluation:
    """The model's scores, to which each process adds its share; refused where it diverged."""
    with parallel.unsharded(run.model):
        result = _predictor(run).evaluate(examples)
    limit = DIVERGED if "perplexity" in result.scores else math.inf
    if not result.loss < limit:
        raise UserError(
            f"step {run.state.step}: the loss on the dev part is {result.loss:g}: training has "
            f"diverged, and this model was not kept. {divergence_help(run)}"
        )
    return result


def _predictor(run: Run) -> Predictor:
    return Predictor.of(run.task, run.config, run.model.eval(), run.folder)


def _gain(run: Run, result: Evaluation) -> float:
    """By how much the measure that decides is better than the best so far."""
    metric, best = run.task.metric, run.state.best_score
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
        try:
            yield
        finally:
            for weight, value in zip(weights, trained, strict=True):
                weight.copy_(value)


def finish(run: Run, last: ValidationResult | None) -> ValidationResult:
    """Scores the best model on the whole dev part, as `regard evaluate` does, and reports.

    The last validation will do where it was of the best model on the whole dev part.
    """
    parallel.barrier()  # until the best model is written
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
        result = measured(run, run.dev)
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
        shutil.rmtree(
            run.folder / "checkpoint.prev", ignore_errors=True
        )  # nothing is left to do again
    return ValidationResult(result, run.dev, True, intervals)
