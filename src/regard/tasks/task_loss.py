"""The mean loss of a model over batches."""

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from regard.core import parallel
from regard.objectives import Objective


@torch.inference_mode()
def losses(
    model: nn.Module, batches: Iterator[Any], objective: Objective
) -> tuple[float, dict[str, float]]:
    """Return the mean loss over all batches, and the mean of each of its terms by name."""
    device = device_of(model)
    total, count, parts = 0.0, 0.0, Counter[str]()
    for batch in itertools.islice(batches, parallel.rank(), None, parallel.world_size()):
        loss = objective(model, objective.prepare(model, batch.to(device)))
        total += float(loss.sum)
        parts.update(loss.parts)
        count += loss.count
    names = parallel.broadcast(sorted(parts))
    total, count, *sums = parallel.all_reduce_sum(
        [total, count, *(float(parts[name]) for name in names)]
    )
    if not count:  # every target is unknown
        return 0.0, {}
    return total / count, {name: part / count for name, part in zip(names, sums, strict=True)}


def device_of(model: nn.Module) -> torch.device:
    """Return the device of a model."""
    return next(itertools.chain(model.parameters(), model.buffers())).device
