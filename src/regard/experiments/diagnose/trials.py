"""Short trials from random initialization: another learning rate, no dropout, a wider model.

Each trial trains a new model for a fixed number of steps with a fixed seed, so it is reproducible.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Iterator
from typing import Any

from torch import nn
from torch.nn.utils import clip_grad_norm_

from regard.config.load import check_config, flatten
from regard.data.tensors.padded import Batch
from regard.experiments.diagnose.diagnosed_run import DiagnosedRun, spaced
from regard.experiments.diagnose.findings import Statistics
from regard.experiments.diagnose.losses import constant_loss, constant_prediction
from regard.nn.dropout import Dropout
from regard.optim.training_options import Training
from regard.storage.run_folder import numbers

TOKENS = 512  # maximum per batch
STEPS = 100  # per trial
RANGE_STEPS = 60
RANGE = (1e-6, 3.0)  # learning rates of the range test
AROUND = 2  # neighbors on each side to average for a smoothed loss
BELOW = 15.0  # factor between the learning rate at the lowest loss and a safe one
ONE_BATCH_STEPS = 60
ONE_BATCH_ROWS = 16
WIDER = 64  # the width to try for a small model
FAR_OFF = 10.0  # try the learning rate of the range test if it differs by this factor
HIGH_DROPOUT = 0.5  # from this rate on, run a trial without dropout

Rate = Callable[[int], float]  # learning rate at each step


def trial_statistics(subject: DiagnosedRun) -> Statistics:
    """Run the range test, overfit one batch, and run a trial for each unusual setting."""
    fixed = spaced(subject.batches(subject.train), 2)
    range_test = learning_rates(subject, fixed)
    own, found = subject.config.training.lr or 0.0, range_test["found"]
    stats: Statistics = {"range": range_test, "steps": STEPS}
    far = bool(found) and not 1 / FAR_OFF < own / found < FAR_OFF
    stats["one_batch"] = one_batch(subject, found if far else own)
    trials: Statistics = {}
    quiet = largest(subject.config.model, "dropout") < HIGH_DROPOUT
    if far:
        trials["lr"] = {"lr": found, "loss": trial(subject, subject.config.model, found, quiet)}
    if not quiet:
        trials["dropout"] = {"loss": trial(subject, subject.config.model, own)}
    if smallest_width(subject.config.model) < WIDER:
        wide = trial(subject, with_width(subject, WIDER), own, quiet)
        trials["width"] = {"width": WIDER, "loss": wide}
    if trials or max(numbers(subject.record.train, "step"), default=0) < 2 * STEPS:
        trials["own"] = {"lr": own, "loss": trial(subject, subject.config.model, own, quiet=False)}
    stats["trials"] = trials
    return stats


def learning_rates(subject: DiagnosedRun, fixed: list[Batch]) -> Statistics:
    """Run a range test (Smith 2017): raise the learning rate each step and record the loss.

    fixed: batches to compute the loss on. Return rates, losses and the result of `best_rate`.
    """
    low, high = RANGE
    factor = (high / low) ** (1 / (RANGE_STEPS - 1))
    model = without_dropout(subject.new_model())
    rates, losses = list[float](), list[float]()
    for step, _ in enumerate(steps(subject, model, lambda at: low * factor**at, RANGE_STEPS)):
        loss = subject.loss(model.eval(), fixed)
        if loss is None or (losses and loss > 3 * losses[0]):
            break
        rates.append(low * factor**step)
        losses.append(loss)
    return {"rates": rates, "losses": losses, **best_rate(rates, losses)}


def best_rate(rates: list[float], losses: list[float]) -> Statistics:
    """Return `lowest`, the learning rate at the lowest smoothed loss, and `found`, a safe one.

    Both are None if the loss never decreased.
    """
    if len(losses) < 2 * AROUND:
        return {"found": None, "lowest": None}
    smooth = [
        statistics.fmean(losses[max(0, at - AROUND) : at + AROUND + 1]) for at in range(len(losses))
    ]
    bottom = min(range(len(smooth)), key=smooth.__getitem__)
    if smooth[bottom] >= losses[0]:
        return {"found": None, "lowest": None}
    return {"found": rates[bottom] / BELOW, "lowest": rates[bottom]}


def trial(subject: DiagnosedRun, options: Any, lr: float, quiet: bool = True) -> float | None:
    """Return the training loss after a short trial, or None if it diverged. quiet: no dropout."""
    model = subject.new_model(options)
    if quiet:
        without_dropout(model)
    for loss in steps(subject, model, warmup_schedule(lr, STEPS), STEPS):
        if not math.isfinite(loss):
            return None
    return subject.loss(model.eval(), subject.batches(subject.train))


def one_batch(subject: DiagnosedRun, lr: float) -> Statistics:
    """Overfit one batch; return its loss before and after, and the constant baseline's loss."""
    pairs = subject.train[:ONE_BATCH_ROWS]
    batch = subject.batches(pairs)[:1]
    model = without_dropout(subject.new_model())
    before = subject.loss(model.eval(), batch)
    rate = warmup_schedule(lr, ONE_BATCH_STEPS)
    for loss in steps(subject, model, rate, ONE_BATCH_STEPS, itertools.cycle(batch)):
        if not math.isfinite(loss):
            break
    after = subject.loss(model.eval(), batch)
    baseline = constant_loss(constant_prediction(batch), batch, subject.objective)
    return {"before": before, "after": after, "baseline": baseline, "steps": ONE_BATCH_STEPS}


def steps(
    subject: DiagnosedRun,
    model: nn.Module,
    rate: Rate,
    count: int,
    batches: Iterator[Batch] | None = None,
    training: Training | None = None,
) -> Iterator[float]:
    """Train a model for `count` steps and yield each loss.

    rate: learning rate at each step. batches: endless, instead of those of the training sample.
    training: settings that replace those of the run.
    """
    training = training or subject.config.training
    optimizers = training.optimizer.build(model, 1.0, {})
    if batches is None:
        tokens = min(TOKENS, training.batch_tokens or TOKENS)
        batches = subject.updates(subject.train, model, tokens)
    for step in range(count):
        model.train()
        batch = next(batches)
        loss = subject.loss_of(model, batch)
        mean = loss.sum / max(loss.count, 1)
        mean.backward()
        clip_grad_norm_(model.parameters(), training.clip_norm or math.inf)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate(step) * group.get("factor", 1.0)
            optimizer.step()
            optimizer.zero_grad()
        yield float(mean.detach())


def warmup_schedule(lr: float, count: int) -> Rate:
    """Return a schedule: linear warmup in the first tenth, linear decay in the last third."""
    return lambda step: lr * min(1.0, (step + 1) / (0.1 * count), 3 * (count - step) / count)


def without_dropout(model: nn.Module) -> nn.Module:
    """Disable dropout in a model, and return the model."""
    for part in model.modules():
        if isinstance(part, Dropout):
            part.rate = 0.0
    return model


def largest(options: Any, key: str) -> float:
    """Return the largest value of a setting, such as `dropout`, in all parts of the model."""
    found = flatten(options.model_dump()).items()
    values = [value for name, value in found if name.rpartition(".")[2] == key]
    return max((value for value in values if value is not None), default=0.0)


def smallest_width(options: Any) -> float:
    """Return the smaller width of encoder and decoder; infinity if neither has a width."""
    tree = options.model_dump()
    widths = [tree[side].get("width") for side in ("encoder", "decoder") if side in tree]
    return min((width for width in widths if width), default=math.inf)


def with_width(subject: DiagnosedRun, width: int) -> Any:
    """Return the model options with this minimum width of encoder and decoder."""
    tree = subject.config.model_dump(mode="json")
    for side in ("encoder", "decoder"):
        part = tree["model"].get(side)
        if part and part.get("width") and part["width"] < width:
            ratio = (part.get("feedforward_width") or 0) / part["width"]
            part["width"] = width
            if part.get("feedforward_width"):
                part["feedforward_width"] = max(1, round(ratio * width))
            if part.get("heads"):
                part["heads"] = math.gcd(width, max(part["heads"], width // 32))
    return check_config(tree, "a wider model").model
