"""Gradients of a batch, computed in several threads. Each thread computes a shard of the rows.

On two cores, two threads inside each operation train an LSTM 1.3 times as fast as one. Two
threads that each compute all operations for half of the rows save another quarter of the time.
"""

import contextlib
import itertools

import torch
from torch import Tensor, nn

from regard.core.threads import thread_map
from regard.data.tensors.padded import Batch
from regard.data.tensors.tree import tree_cat
from regard.nn.dropout import use_generator
from regard.objectives.objective import DONE, Context, Loss, Objective

MIN_ROWS = 8  # per shard


def backward(
    model: nn.Module,
    objective: Objective,
    batch: Batch,
    count: float,
    threads: int,
    context: Context = DONE,
) -> Loss:
    """Accumulate the gradients of the summed loss divided by `count`; return the loss.

    Results are deterministic. Each shard samples from its own generator, which is seeded from
    torch's default generator. Gradients are summed in the order of the shards.
    """
    pieces = [batch] if threads == 1 or needs_batch(model) else parts(batch, threads)
    if len(pieces) == 1:
        loss = objective(model, batch, context)
        (loss.sum / count).backward()
        return loss
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    seeds = torch.randint(2**62, (len(pieces),)).tolist()

    precision = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None

    def work(part: tuple[Batch, int]) -> tuple[Loss, tuple[Tensor | None, ...]]:
        piece, seed = part
        with use_generator(torch.Generator().manual_seed(seed)), _autocast(precision):
            loss = objective(model, piece, context)
            return loss, torch.autograd.grad(loss.sum / count, weights, allow_unused=True)

    results = thread_map(work, zip(pieces, seeds, strict=True), threads)
    for _, gradients in results:
        _add(weights, gradients)
    return _joined([loss for loss, _ in results])


def _autocast(kind: torch.dtype | None) -> contextlib.AbstractContextManager[None]:
    """Return an autocast context for a worker thread. kind: the type in the calling thread.

    Rounded weights are not cached, since all threads would share the cache.
    """
    if kind is None:
        return contextlib.nullcontext()
    return torch.autocast("cpu", kind, cache_enabled=False)


def needs_batch(model: nn.Module) -> bool:
    """Return whether a module computes statistics over all rows, so the batch cannot be split."""
    return any(getattr(part, "needs_batch", False) for part in model.modules())


def parts(batch: Batch, threads: int) -> list[Batch]:
    """Split the batch by rows into one shard per thread, unless shards would be too small."""
    count = 1 if batch.masks[0].is_cuda else min(threads, batch.rows // MIN_ROWS)
    if count < 2:
        return [batch]
    bounds = [batch.rows * i // count for i in range(count + 1)]
    return [batch.take(slice(a, b)) for a, b in itertools.pairwise(bounds)]


def _joined(losses: list[Loss]) -> Loss:
    """Return the summed loss of all shards, detached from the autograd graph."""
    total = torch.stack([loss.sum.detach() for loss in losses]).sum()
    logged = {
        name: torch.stack([loss.parts[name] for loss in losses]).sum() for name in losses[0].parts
    }
    carry = tree_cat([loss.carry for loss in losses])
    return Loss(total, sum(loss.count for loss in losses), logged, carry)


def _add(weights: list[nn.Parameter], gradients: tuple[Tensor | None, ...]) -> None:
    """Add gradients to the `grad` of the weights."""
    for weight, gradient in zip(weights, gradients, strict=True):
        if gradient is not None and weight.grad is None:
            weight.grad = gradient
        elif gradient is not None and weight.grad is not None:
            weight.grad += gradient
