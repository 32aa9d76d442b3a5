"""The loop: a generator that yields a record after each update. The caller does the rest."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from regard.core import parallel
from regard.core.errors import UserError
from regard.training.run import Run
from regard.training.update import Micro, Update, update


@dataclass(frozen=True, kw_only=True)
class Record(Update):
    """One update, and where in the run it was."""

    step: int
    epoch: float
    share: float
    lr: float
    seconds: float


def train(run: Run) -> Iterator[Record]:
    """Trains until the run is over: its steps, its epochs or its time."""
    config, progress = run.config.training, run.progress
    assert config.lr is not None
    run.start_clock()
    run.epoch_batches = len(_order(run, progress.epoch))  # what share_done divides by
    updates = _updates(run)
    while (share := share_done(run)) < 1:
        micro = next(updates)
        lr = config.lr * config.schedule.factor(share, progress.step)
        done = update(run, micro, lr, share)
        progress.step += 1
        progress.position += min(run.batches, run.epoch_batches - progress.position)
        if progress.position == run.epoch_batches:
            progress.epoch, progress.position, run.carry = progress.epoch + 1, 0, None
        yield _record(run, done, lr)


def solve(run: Run) -> Iterator[Record]:
    """The one update of a model that is solved by a formula."""
    run.start_clock()
    run.task.solve(run.model, run.corpus, run.config.objective)
    run.progress.step, run.progress.epoch = 1, 1
    tokens = int(run.corpus.lengths.sum())
    yield _record(run, Update(math.nan, {}, 0.0, {}, tokens, len(run.corpus), 0.0), lr=0.0)


def _record(run: Run, done: Update, lr: float) -> Record:
    """The record of the update that was just made."""
    run.read_clock()
    progress = run.progress
    return Record(
        **vars(done),
        step=progress.step,
        epoch=progress.epoch + progress.position / run.epoch_batches,
        share=share_done(run),
        lr=lr,
        seconds=progress.seconds,
    )


def share_done(run: Run) -> float:
    """How much of the run is over, 0 to 1: of whichever limit comes first."""
    config, progress = run.config.training, run.progress
    shares = [float(progress.step > 0 and not config.optimizer.stepwise)]
    if config.budget:
        shares.append(progress.seconds / config.budget)
    if config.steps:
        shares.append(progress.step / config.steps)
    if config.epochs:
        epoch = progress.epoch + progress.position / max(1, run.epoch_batches)
        shares.append(epoch / config.epochs)
    return min(1.0, max(shares))


def _updates(run: Run) -> Iterator[list[Micro]]:
    """The batches of each update from where the run stands, epoch after epoch without end.

    An update never reaches over the end of an epoch; its last one may have fewer batches.
    """
    epoch, position = run.progress.epoch, run.progress.position
    while True:
        order = _order(run, epoch)
        run.epoch_batches = len(order)
        for start in range(position, len(order), run.batches):
            yield _mine(run, order, start)
        epoch, position = epoch + 1, 0


def _mine(run: Run, order: list[np.ndarray], start: int) -> list[Micro]:
    """This process's batches of an update.

    Where batches follow each other, each process goes through all of them and has its own rows.
    Otherwise it has its own batches; one that gets none, at the end of an epoch, does another's
    without weight, since the others wait for its gradients.
    """
    numbers = range(start, min(start + run.batches, len(order)))
    if run.corpus.sequential:
        if len(order[start]) < parallel.world_size():
            raise UserError(
                f"a batch has {len(order[start])} rows of running text, too few for "
                f"{parallel.world_size()} processes; raise training.batch_tokens or start fewer"
            )
        rows = [(number, parallel.shard_rows(order[number]), True) for number in numbers]
    else:
        rounds = -(-len(numbers) // parallel.world_size())
        places = [r * parallel.world_size() + parallel.rank() for r in range(rounds)]
        rows = [(numbers[p], order[numbers[p]], True) for p in places if p < len(numbers)]
        rows += [(start, order[start], False)] * (rounds - len(rows))
    batch = run.corpus.batch
    return [Micro(batch(part).to(run.device), number, own) for number, part, own in rows]


def _order(run: Run, epoch: int) -> list[np.ndarray]:
    """The batches of an epoch, as rows of the corpus; they are put in order once."""
    config = run.config.training
    assert config.batch_tokens is not None
    if run.order is None or run.order[0] != epoch:
        run.order = None  # one of them is large enough
        run.order = epoch, run.corpus.order(config.batch_tokens, config.seed, epoch)
    return run.order[1]
