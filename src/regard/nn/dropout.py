"""Dropout with little overhead on a CPU."""

import contextlib
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.context import Slot

POOL = 1 << 23  # precomputed mask values


class Dropout(nn.Module):
    """Dropout: zero a fraction `rate` of activations, scale up the rest (Srivastava et al. 2014).

    Sampling a random number per activation takes 20 to 30 % of a training step on a CPU. Here
    a long mask is sampled once, and each call multiplies by a slice of the mask at a random
    offset. The offset comes from torch's generator, so runs are reproducible and can be resumed.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """Return x with dropout in training, x itself otherwise."""
        if not self.training or self.rate == 0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.rate)
        generator = thread_generator()
        if x.numel() > POOL // 2:
            keep = torch.empty_like(x).bernoulli_(1 - self.rate, generator=generator)
            return x * keep.div_(1 - self.rate)
        start = int(torch.randint(POOL - x.numel(), (), generator=generator))
        return x * _masks(self.rate)[start : start + x.numel()].view(x.shape).to(x.dtype)

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


# The random generator of this thread; None: torch's generator.
GENERATOR: Slot[torch.Generator | None] = Slot("generator", None)


def thread_generator() -> torch.Generator | None:
    """Return the random generator of this thread; None: torch's generator."""
    return GENERATOR.get()


def use_generator(generator: torch.Generator) -> contextlib.AbstractContextManager[None]:
    """Use this generator for dropout in this thread inside the block.

    Threads that share torch's generator would draw from it in a different order in each run.
    """
    return GENERATOR.set(generator)


@lru_cache(maxsize=4)
def _masks(rate: float) -> Tensor:
    """Return a mask (POOL,) with values 0 or 1 / (1 - rate), the same in every process."""
    generator = torch.Generator().manual_seed(0)
    keep = torch.empty(POOL).bernoulli_(1 - rate, generator=generator)
    return keep / (1 - rate)
