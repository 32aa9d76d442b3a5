"""Long trials on the dev set: what more steps, other settings and an n-gram model reach.

They show what the data allows. A trial lasts about `SECONDS` on one core. Its number of steps
follows from the size of the model, not from a clock, so the same run has the same trials.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from regard.config.configs import Config
from regard.core.data_stats import DataStats
from regard.data.tensors.padded import Batch
from regard.experiments.diagnose.diagnosed_run import DiagnosedRun
from regard.experiments.diagnose.findings import Statistics
from regard.experiments.diagnose.losses import accuracy_of, constant_loss, constant_prediction
from regard.experiments.diagnose.rival import choose_rival, ngram_options
from regard.experiments.diagnose.trials import steps, warmup_schedule

SECONDS = 3.0  # of a trial, as estimated for one core
MAX_SECONDS = 30.0  # of CPU time: a trial on a slow machine ends here
MIN_STEPS, MAX_STEPS = 60, 1500
MAX_NGRAM_TOKENS = 5_000_000  # of a text whose n-grams are counted
MAX_ERROR = 0.01  # of the tokens or labels, with which dev counts as solved
MAX_LOSS = 0.01  # fraction of the baseline loss with which dev counts as solved
ENOUGH = 0.5  # fraction of the dev loss of the run that more steps reach
LOWER = 0.3  # factor of the learning rate if the run was much longer than the trial
LONG_RUN = 3  # from this many times the steps of the trial on


def ceiling_statistics(subject: DiagnosedRun) -> Statistics:
    """Return loss and accuracy on dev of the run, and of the trials unless dev is solved."""
    dev = subject.batches(subject.dev)
    constant = constant_prediction(subject.batches(subject.train))
    found: Statistics = {
        "run": _scores(subject, subject.trained, dev),
        "baseline": constant_loss(constant, dev, subject.objective),
    }
    if is_solved(found):
        return found
    stats = _data_stats(subject)
    found["continued"] = _continued(subject, dev, stats)
    rival = choose_rival(subject.config, replace(stats, budget=SECONDS))
    if rival is not None and not _is_enough(found):
        found["rival"] = {"kind": rival.kind, "changes": rival.changes}
        found["rival"] |= _from_scratch(subject, rival.config, dev, stats)
    options = ngram_options(subject.config)
    if options is not None and stats.tokens <= MAX_NGRAM_TOKENS:
        model = subject.task.build(options)
        subject.task.solve(model, subject.task.corpus(subject.trial), subject.objective)
        found["ngram"] = {"order": options.order, **_scores(subject, model, dev)}
    return found


def is_solved(found: Statistics) -> bool:
    """Return whether the model has almost no errors on dev, or its loss is unknown."""
    loss, accuracy, baseline = found["run"]["loss"], found["run"]["accuracy"], found["baseline"]
    if loss is None or not baseline:
        return True
    return bool(loss < MAX_LOSS * baseline or (accuracy or 0.0) > 1 - MAX_ERROR)


def _is_enough(found: Statistics) -> bool:
    """Return whether more steps improve the run so much that no rival is needed."""
    loss = found["continued"]["loss"]
    return loss is not None and bool(loss < ENOUGH * found["run"]["loss"])


def _data_stats(subject: DiagnosedRun) -> DataStats:
    """Return the statistics of the training set, extrapolated from the sample for trials."""
    stats = subject.task.stats(subject.task.corpus(subject.trial))
    scale = subject.examples / max(1, len(subject.trial))
    sizes = {n: round(scale * getattr(stats, n)) for n in ("examples", "tokens", "target_tokens")}
    return replace(stats, **sizes)


def _scores(subject: DiagnosedRun, model: nn.Module, dev: Sequence[Batch]) -> Statistics:
    model = model.to(subject.device).eval()
    return {"loss": subject.loss(model, dev), "accuracy": accuracy_of(model, dev)}


def _continued(subject: DiagnosedRun, dev: Sequence[Batch], stats: DataStats) -> Statistics:
    """Return the scores after more steps from the saved weights."""
    model = subject.new_model()
    model.load_state_dict(subject.trained.state_dict())
    count = trial_steps(subject.config, stats)
    done = max((int(line.get("step", 0)) for line in subject.record.train), default=0)
    lr = (subject.config.training.lr or 1e-3) * (LOWER if done > LONG_RUN * count else 1.0)
    return {"lr": lr, **_train(subject, subject.config, model, (lr, count), dev)}


def _from_scratch(
    subject: DiagnosedRun, config: Config, dev: Sequence[Batch], stats: DataStats
) -> Statistics:
    """Return the scores of a new model with other settings after a trial."""
    model = subject.new_model(config.model, config.training)
    plan = config.training.lr or 1e-3, trial_steps(config, stats)
    return _train(subject, config, model, plan, dev)


def trial_steps(config: Config, stats: DataStats) -> int:
    """Return the number of steps that take about `SECONDS`."""
    each = config.training.update_seconds(stats, config.model)
    return max(MIN_STEPS, min(MAX_STEPS, round(SECONDS / each)))


def _train(
    subject: DiagnosedRun,
    config: Any,
    model: nn.Module,
    plan: tuple[float, int],
    dev: Sequence[Batch],
) -> Statistics:
    """Train a model and return its scores. plan: peak learning rate and number of steps."""
    lr, count = plan
    torch.manual_seed(config.training.seed)
    batches = subject.updates(subject.trial, model, config.training.batch_tokens)
    start, done = time.thread_time(), 0
    rate = warmup_schedule(lr, count)
    for _ in steps(subject, model, rate, count, batches, config.training):
        done += 1
        if time.thread_time() - start > MAX_SECONDS:
            break
    return {"steps": done, **_scores(subject, model, dev)}
