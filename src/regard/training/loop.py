"""The loop: a generator that yields a record after each update. The caller does the rest."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from torch.nn.utils import clip_grad_norm_

from regard.data.batch import Batch
from regard.errors import UserError
from regard.training.run import Run


@dataclass(frozen=True)
class Record:
    """One update. loss and its parts (nll: without smoothing), a symbol or an example."""

    step: int
    epoch: float
    share: float
    loss: float
    parts: dict[str, float]
    norm: float
    lr: float
    tokens: float
    examples: int
    padding: float
    seconds: float


def train(run: Run) -> Iterator[Record]:
    """Trains until the run is over: its steps, its epochs or its time."""
    config, progress = run.config.training, run.progress
    assert config.lr is not None
    run.start_clock()
    run.epoch_batches = len(_order(run, progress.epoch))  # what share_done divides by
    updates = _updates(run)
    while share_done(run) < 1:
        micro = next(updates)
        lr = config.lr * config.schedule.factor(share_done(run), progress.step)
        loss, parts, norm, count = _update(run, micro, lr)
        progress.step += 1
        progress.position += len(micro)
        if progress.position == run.epoch_batches:
            progress.epoch, progress.position, run.carry = progress.epoch + 1, 0, None
        run.read_clock()
        yield Record(
            step=progress.step,
            epoch=progress.epoch + progress.position / run.epoch_batches,
            share=share_done(run),
            loss=loss,
            parts=parts,
            norm=norm,
            lr=lr,
            tokens=count,
            examples=sum(batch.rows for batch in micro),
            padding=_padding(micro),
            seconds=progress.seconds,
        )


def solve(run: Run) -> Iterator[Record]:
    """The one update of a model that is solved by a formula."""
    run.start_clock()
    run.task.solve(run.model, run.corpus, run.config.objective)
    run.progress.step, run.progress.epoch = 1, 1
    run.read_clock()
    symbols = int(run.corpus.lengths.sum())
    yield Record(
        step=1,
        epoch=1.0,
        share=1.0,
        loss=math.nan,
        parts={},
        norm=0.0,
        lr=0.0,
        tokens=symbols,
        examples=len(run.corpus),
        padding=0.0,
        seconds=run.progress.seconds,
    )


def share_done(run: Run) -> float:
    """How much of the run is over, 0 to 1: of whichever limit comes first."""
    config, progress = run.config.training, run.progress
    shares = [float(progress.step > 0 and config.optimizer.kind == "exact")]
    if config.budget:
        shares.append(progress.seconds / config.budget)
    if config.steps:
        shares.append(progress.step / config.steps)
    if config.epochs:
        epoch = progress.epoch + progress.position / max(1, run.epoch_batches)
        shares.append(epoch / config.epochs)
    return min(1.0, max(shares))


def _updates(run: Run) -> Iterator[list[Batch]]:
    """The batches of each update from where the run stands, epoch after epoch without end.

    An update never reaches over the end of an epoch; its last one may have fewer batches.
    """
    accumulate = run.config.training.accumulate
    epoch, position = run.progress.epoch, run.progress.position
    while True:
        order = _order(run, epoch)
        run.epoch_batches = len(order)
        for start in range(position, len(order), accumulate):
            rows = order[start : start + accumulate]
            yield [run.corpus.batch(r).to(run.device) for r in rows]
        epoch, position = epoch + 1, 0


def _order(run: Run, epoch: int) -> list[np.ndarray]:
    """The batches of an epoch, as rows of the corpus."""
    config = run.config.training
    assert config.tokens is not None
    return run.corpus.order(config.tokens, config.seed, epoch)


def _update(
    run: Run, micro: list[Batch], lr: float
) -> tuple[float, dict[str, float], float, float]:
    """One update: backward, clip, step, zero. Loss and parts a symbol, gradient norm, symbols."""
    model, objective, optimizer = run.model, run.config.objective, run.optimizer
    model.train()
    count = sum(objective.count(batch) for batch in micro) or 1  # nothing to learn from
    total, parts = 0.0, Counter[str]()
    for batch in micro:
        loss = objective(model, batch._replace(carry=run.carry))
        run.carry = loss.carry if run.corpus.sequential else None
        (loss.sum / count).backward()
        total += float(loss.sum.detach())
        parts.update(loss.parts)
    norm = float(clip_grad_norm_(model.parameters(), run.config.training.clip or math.inf))
    if not (math.isfinite(total) and math.isfinite(norm)):
        raise UserError(_not_finite(run, total / count, norm, lr))
    for group in optimizer.param_groups:
        group["lr"] = lr * group["factor"]
    optimizer.step()
    optimizer.zero_grad()
    return total / count, {name: part / count for name, part in parts.items()}, norm, count


def _not_finite(run: Run, loss: float, norm: float, lr: float) -> str:
    """Why training stopped, and what to do."""
    what = "loss" if not math.isfinite(loss) else "gradient"
    return (
        f"step {run.progress.step + 1}: the {what} is not a finite number "
        f"(loss {loss:g}, gradient norm {norm:g}, learning rate {lr:.2g}). Training stopped before "
        f"this update; the models saved before it are whole. {calmer(run)}"
    )


def calmer(run: Run) -> str:
    """What to try when training is too wild."""
    config = run.config.training
    if config.lr is None:  # solved by a formula
        return ""
    clip = "" if 0 < config.clip <= 1 else f", or training.clip=1 (now {config.clip:g})"
    return (
        f"Try --set training.lr={config.lr / 3:.1g} (now {config.lr:g}) or a longer "
        f"training.schedule.warmup{clip}."
    )


def _padding(micro: list[Batch]) -> float:
    """The share of positions, of both sides, that are padding."""
    masks = [mask for batch in micro for mask in batch.masks]
    return 1 - sum(int(mask.sum()) for mask in masks) / sum(mask.numel() for mask in masks)
