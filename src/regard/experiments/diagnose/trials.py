"""Short trainings from fresh weights: what another rate, no dropout or a wider model would do.

Each has a fixed number of steps, dropout off and a fixed seed, so it comes out the same each time.
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
from regard.experiments.diagnose.findings import Figures
from regard.experiments.diagnose.losses import same_loss, usual
from regard.experiments.diagnose.subject import Subject, spread
from regard.nn.dropout import Dropout
from regard.storage.run_folder import numbers

TOKENS = 512  # of a batch, at most
STEPS = 100  # of a trial
RANGE_STEPS = 60
RANGE = (1e-6, 3.0)
AROUND = 2  # steps on each side that smooth the loss
BELOW = 15.0  # a rate to train with lies that far below the one at the lowest loss
ONE_BATCH_STEPS = 60
ONE_BATCH_ROWS = 16
WIDE = 64  # the width a small model is tried with
FAR = 10.0  # a rate this many times off the one that the range test finds is tried
MUCH = 0.5  # dropout from here on is tried without

Rate = Callable[[int], float]


def trial_figures(subject: Subject) -> Figures:
    """The range test, one batch, and a trial of each setting that looks odd."""
    fixed = spread(subject.batches(subject.train), 2)
    range_test = learning_rates(subject, fixed)
    own, found = subject.config.training.lr or 0.0, range_test["found"]
    figures: Figures = {"range": range_test, "steps": STEPS}
    far = bool(found) and not 1 / FAR < own / found < FAR
    figures["one_batch"] = one_batch(subject, found if far else own)
    trials: Figures = {}
    quiet = largest(subject.config.model, "dropout") < MUCH  # each trial changes one thing only
    if far:
        trials["rate"] = {"lr": found, "loss": trial(subject, subject.config.model, found, quiet)}
    if not quiet:
        trials["dropout"] = {"loss": trial(subject, subject.config.model, own)}
    if smallest_width(subject.config.model) < WIDE:
        wide = trial(subject, widened(subject, WIDE), own, quiet)
        trials["wide"] = {"width": WIDE, "loss": wide}
    if trials or max(numbers(subject.record.train, "step"), default=0) < 2 * STEPS:
        trials["own"] = {"lr": own, "loss": trial(subject, subject.config.model, own, quiet=False)}
    figures["trials"] = trials
    return figures


def learning_rates(subject: Subject, fixed: list[Batch]) -> Figures:
    """A range test (Smith 2017): the rate rises from step to step, the loss is read after each.

    lowest: the rate at the lowest loss, beyond which it rises again; found: well below it.
    """
    low, high = RANGE
    factor = (high / low) ** (1 / (RANGE_STEPS - 1))
    model = quieted(subject.fresh())
    rates, losses = list[float](), list[float]()
    for step, _ in enumerate(steps(subject, model, lambda at: low * factor**at, RANGE_STEPS)):
        loss = subject.loss(model.eval(), fixed)
        if loss is None or (losses and loss > 3 * losses[0]):
            break
        rates.append(low * factor**step)
        losses.append(loss)
    return {"rates": rates, "losses": losses, **best_rate(rates, losses)}


def best_rate(rates: list[float], losses: list[float]) -> Figures:
    """The rate at the lowest smoothed loss, and one that is safely below it."""
    if len(losses) < 2 * AROUND:
        return {"found": None, "lowest": None}
    smooth = [
        statistics.fmean(losses[max(0, at - AROUND) : at + AROUND + 1]) for at in range(len(losses))
    ]
    bottom = min(range(len(smooth)), key=smooth.__getitem__)
    if smooth[bottom] >= losses[0]:
        return {"found": None, "lowest": None}
    return {"found": rates[bottom] / BELOW, "lowest": rates[bottom]}


def trial(subject: Subject, options: Any, lr: float, quiet: bool = True) -> float | None:
    """The loss on the training sample after a short training; None where it went to infinity."""
    model = subject.fresh(options)
    if quiet:
        quieted(model)
    for loss in steps(subject, model, warmed(lr, STEPS), STEPS):
        if not math.isfinite(loss):
            return None
    return subject.loss(model.eval(), subject.batches(subject.train))


def one_batch(subject: Subject, lr: float) -> Figures:
    """Whether the model learns a single batch by heart: its loss before, after, and of no model."""
    pairs = subject.train[:ONE_BATCH_ROWS]
    batch = subject.batches(pairs)[:1]
    model = quieted(subject.fresh())
    before = subject.loss(model.eval(), batch)
    rate = warmed(lr, ONE_BATCH_STEPS)
    for loss in steps(subject, model, rate, ONE_BATCH_STEPS, batch):
        if not math.isfinite(loss):
            break
    after = subject.loss(model.eval(), batch)
    same = same_loss(usual(batch), batch, subject.objective)
    return {"before": before, "after": after, "same": same, "steps": ONE_BATCH_STEPS}


def steps(
    subject: Subject, model: nn.Module, rate: Rate, count: int, batches: list[Batch] | None = None
) -> Iterator[float]:
    """Trains a model for so many steps; yields the loss of each."""
    config = subject.config
    optimizers = config.training.optimizer.build(model, 1.0, {})
    tokens = min(TOKENS, config.training.tokens or TOKENS)
    fresh = (
        subject.updates(subject.train, model, tokens)
        if batches is None
        else itertools.cycle(batches)
    )
    for step in range(count):
        model.train()
        batch = next(fresh)
        loss = subject.loss_of(model, batch)
        mean = loss.sum / max(loss.count, 1)
        mean.backward()
        clip_grad_norm_(model.parameters(), config.training.clip or math.inf)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate(step) * group.get("factor", 1.0)
            optimizer.step()
            optimizer.zero_grad()
        yield float(mean.detach())


def warmed(lr: float, count: int) -> Rate:
    """A rate that rises for a tenth of the steps, stays, and falls in the last third."""
    return lambda step: lr * min(1.0, (step + 1) / (0.1 * count), 3 * (count - step) / count)


def quieted(model: nn.Module) -> nn.Module:
    """The model with its dropout turned off for good."""
    for part in model.modules():
        if isinstance(part, Dropout):
            part.rate = 0.0
    return model


def largest(options: Any, key: str) -> float:
    """The largest value of a setting in all parts of the model."""
    found = flatten(options.model_dump()).items()
    values = [value for name, value in found if name.rpartition(".")[2] == key]
    return max((value for value in values if value is not None), default=0.0)


def smallest_width(options: Any) -> float:
    """The width of the narrowest part that has layers."""
    tree = options.model_dump()
    widths = [tree[side].get("width") for side in ("encoder", "decoder") if side in tree]
    return min((width for width in widths if width), default=math.inf)


def widened(subject: Subject, width: int) -> Any:
    """The options of the model with every side at least so wide."""
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
