"""The loop: a generator that yields a record after each update. The caller does the rest."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from regard.core import parallel
from regard.core.errors import UserError
from regard.training.run import Run
from regard.training.update import MicroBatch, Update, update


@dataclass(frozen=True, kw_only=True)
class StepRecord(Update):
    """One update, and where in the run it was."""

    step: int
    epoch: float
    progress: float
    lr: float
    seconds: float


def train(run: Run) -> Iterator[StepRecord]:
    """Trains until the run is over: its steps, its epochs or its time."""
    config, state = run.config.training, run.state
    assert config.lr is not None
    run.start_clock()
    run.epoch_batches = len(_order(run, state.epoch))  # what progress_fraction divides by
    updates = _updates(run)
    while (share := progress_fraction(run)) < 1:
        micro = next(updates)
        lr = config.lr * config.schedule.factor(share, state.step)
        done = update(run, micro, lr, share)
        state.step += 1
        state.position += min(run.batches, run.epoch_batches - state.position)
        if state.position == run.epoch_batches:
            state.epoch, state.position, run.carry = state.epoch + 1, 0, None
        yield _record(run, done, lr)


def solve(run: Run) -> Iterator[StepRecord]:
    """The one update of a model that is solved by a formula."""
    run.start_clock()
    run.task.solve(run.model, run.corpus, run.config.objective)
    run.state.step, run.state.epoch = 1, 1
    tokens = int(run.corpus.lengths.sum())
    yield _record(run, Update(math.nan, {}, 0.0, {}, tokens, len(run.corpus), 0.0), lr=0.0)


def _record(run: Run, done: Update, lr: float) -> StepRecord:
    """The record of the update that was just made."""
    run.read_clock()
    state = run.state
    return StepRecord(
        **vars(done),
        step=state.step,
        epoch=state.epoch + state.position / run.epoch_batches,
        progress=progress_fraction(run),
        lr=lr,
        seconds=state.seconds,
    )


def progress_fraction(run: Run) -> float:
    """How much of the run is over, 0 to 1: of whichever limit comes first."""
    config, state = run.config.training, run.state
    shares = [float(state.step > 0 and not config.optimizer.stepwise)]
    if config.budget:
        shares.append(state.seconds / config.budget)
    if config.steps:
        shares.append(state.step / config.steps)
    if config.epochs:
        epoch = state.epoch + state.position / max(1, run.epoch_batches)
        shares.append(epoch / config.epochs)
    return min(1.0, max(shares))


def _updates(run: Run) -> Iterator[list[MicroBatch]]:
    """The batches of each update from where the run stands, epoch after epoch without end.

    An update never reaches over the end of an epoch; its last one may have fewer batches.
    """
    epoch, position = run.state.epoch, run.state.position
    while True:
        order = _order(run, epoch)
        run.epoch_batches = len(order)
        for start in range(position, len(order), run.batches):
            yield _local_batches(run, order, start)
        epoch, position = epoch + 1, 0


def _local_batches(run: Run, order: list[np.ndarray], start: int) -> list[MicroBatch]:
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
    return [MicroBatch(batch(part).to(run.device), number, own) for number, part, own in rows]


def _order(run: Run, epoch: int) -> list[np.ndarray]:
    """The batches of an epoch, as rows of the corpus; they are put in order once."""
    config = run.config.training
    assert config.batch_tokens is not None
    if run.order is None or run.order[0] != epoch:
        run.order = None  # one of them is large enough
        run.order = epoch, run.corpus.order(config.batch_tokens, config.seed, epoch)
    return run.order[1]
