"""Running statistics of averaged weights.

The running statistics of batch norms belong to the weights of the last updates. Averaged weights
have other activations, so their statistics are computed again (Izmailov et al. 2018, 3.2).
"""

import contextlib
import itertools
from collections.abc import Iterator

import torch
from torch import nn

from regard.core import parallel
from regard.training.run import Run

MAX_BATCHES = 50  # from which the statistics are computed


@contextlib.contextmanager
def recomputed_statistics(run: Run) -> Iterator[None]:
    """Use running statistics of the current weights inside the block.

    They are means over the same training batches in every process, without dropout.
    """
    norms = [part for part in run.model.modules() if getattr(part, "needs_batch", False)]
    if not norms:
        yield
        return
    before = [(buffer, buffer.clone()) for norm in norms for buffer in norm.buffers(recurse=False)]
    _recompute(run, norms)
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in before:
                buffer.copy_(value)


@torch.no_grad()
def _recompute(run: Run, norms: list[nn.Module]) -> None:
    """Replace the running statistics by means over batches of the first epoch."""
    training = run.config.training
    assert training.batch_tokens is not None
    order = run.corpus.order(training.batch_tokens, training.seed, 0)
    momenta = [norm.momentum for norm in norms]
    run.model.eval()
    with parallel.unsharded(run.model):
        for number, rows in enumerate(itertools.islice(order, MAX_BATCHES)):
            for norm in norms:
                norm.train().momentum = 1 / (number + 1)  # type: ignore[assignment]
            run.model(run.corpus.batch(rows).to(run.device))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.eval().momentum = momentum
