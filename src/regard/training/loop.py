"""The training loop: a generator that yields a record after each update."""

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
    """Statistics of an update and its position in the run. progress: finished fraction."""

    step: int
    epoch: float
    progress: float
    lr: float
    seconds: float


def train(run: Run) -> Iterator[StepRecord]:
    """Train until a limit of steps, epochs or time is reached; yield a record per update."""
    config, state = run.config.training, run.state
    assert config.lr is not None
    run.start_clock()
    run.epoch_batches = len(_order(run, state.epoch))  # for progress_fraction
    updates = _updates(run)
    while (progress := progress_fraction(run)) < 1:
        micro = next(updates)
        lr = config.lr * config.schedule.factor(progress, state.step)
        result = update(run, micro, lr, progress)
        state.step += 1
        state.position += min(run.batches, run.epoch_batches - state.position)
        if state.position == run.epoch_batches:
            state.epoch, state.position, run.carry = state.epoch + 1, 0, None
        yield _record(run, result, lr)


def solve(run: Run) -> Iterator[StepRecord]:
    """Fit the model in closed form, without gradients; yield a single record."""
    run.start_clock()
    run.task.solve(run.model, run.corpus, run.config.objective)
    run.state.step, run.state.epoch = 1, 1
    tokens = int(run.corpus.lengths.sum())
    yield _record(run, Update(math.nan, {}, 0.0, {}, tokens, len(run.corpus), 0.0), lr=0.0)


def _record(run: Run, result: Update, lr: float) -> StepRecord:
    """Return the record of the update that was just made."""
    run.read_clock()
    state = run.state
    return StepRecord(
        **vars(result),
        step=state.step,
        epoch=state.epoch + state.position / run.epoch_batches,
        progress=progress_fraction(run),
        lr=lr,
        seconds=state.seconds,
    )


def progress_fraction(run: Run) -> float:
    """Return the finished fraction of the run, by the limit that is closest to being reached.

    The limits are time, steps and epochs. A closed-form fit is finished after one step.
    """
    config, state = run.config.training, run.state
    fractions = [float(state.step > 0 and not config.optimizer.stepwise)]
    if config.budget:
        fractions.append(state.time_fraction(config.budget, state.seconds))
    if config.steps:
        fractions.append(state.step / config.steps)
    if config.epochs:
        epoch = state.epoch + state.position / max(1, run.epoch_batches)
        fractions.append(epoch / config.epochs)
    return min(1.0, max(fractions))


def _updates(run: Run) -> Iterator[list[MicroBatch]]:
    """Yield the batches of each update, endlessly, from the current position in the run.

    An update never spans two epochs; the last update of an epoch may have fewer batches.
    """
    epoch, position = run.state.epoch, run.state.position
    while True:
        order = _order(run, epoch)
        run.epoch_batches = len(order)
        for start in range(position, len(order), run.batches):
            yield _local_batches(run, order, start)
        epoch, position = epoch + 1, 0


def _local_batches(run: Run, order: list[np.ndarray], start: int) -> list[MicroBatch]:
    """Return this process's batches of an update. start: index of its first batch in the epoch.

    With a sequential corpus, each process takes some rows of every batch. Otherwise each process
    takes complete batches. At the end of an epoch, a process may lack a batch. It then computes
    the first batch of the update with weight 0, since the others wait for its gradients.
    """
    indices = range(start, min(start + run.batches, len(order)))
    if run.corpus.sequential:
        if len(order[start]) < parallel.world_size():
            raise UserError(
                f"a batch has only {len(order[start])} rows for {parallel.world_size()} processes",
                help="raise training.batch_tokens, or use fewer processes",
            )
        rows = [(number, parallel.shard_rows(order[number]), True) for number in indices]
    else:
        rounds = -(-len(indices) // parallel.world_size())
        own = [r * parallel.world_size() + parallel.rank() for r in range(rounds)]
        rows = [(indices[i], order[indices[i]], True) for i in own if i < len(indices)]
        rows += [(start, order[start], False)] * (rounds - len(rows))
    batch = run.corpus.batch
    return [MicroBatch(batch(part).to(run.device), number, counts) for number, part, counts in rows]


def _order(run: Run, epoch: int) -> list[np.ndarray]:
    """Return the indices of the examples in each batch of an epoch; cached for one epoch."""
    config = run.config.training
    assert config.batch_tokens is not None
    if run.order is None or run.order[0] != epoch:
        run.order = None  # free the previous order first
        run.order = epoch, run.corpus.order(config.batch_tokens, config.seed, epoch)
    return run.order[1]
