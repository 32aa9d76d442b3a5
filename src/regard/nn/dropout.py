"""Dropout with little overhead on a CPU."""

import contextlib
from collections.abc import Iterator
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
        steps = STEPS.get()
        if steps is not None and x.numel() * steps.count <= POOL // 2:
            return x * steps.mask(x, self.rate)
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


class StepNoise:
    """Dropout masks and noise of a pass over all positions, applied one position at a time.

    A decoder that reads `count` tokens one by one then has the masks that it would have if it read
    all at once. step: the current position. Only on a CPU.
    """

    def __init__(self, count: int) -> None:
        self.count, self.step, self.call = count, 0, 0
        self.starts: list[int] = []  # offset of the mask of each call in a step
        self.normal: Tensor | None = None  # the noise of all positions

    def next(self) -> None:
        """Continue with the next position."""
        self.step, self.call = self.step + 1, 0

    def mask(self, x: Tensor, rate: float) -> Tensor:
        """Return the mask of x, (R, D) or (R, 1, D), at the current position."""
        size = x.numel() * self.count
        if self.call == len(self.starts):
            start = torch.randint(POOL - size, (), generator=thread_generator())
            self.starts.append(int(start))
        start_of_call = self.starts[self.call]
        self.call += 1
        masks = _masks(rate)[start_of_call : start_of_call + size]
        return masks.view(len(x), self.count, -1)[:, self.step].view(x.shape).to(x.dtype)

    def normal_noise(self, like: Tensor) -> Tensor:
        """Return normal noise (R, 1, S) at the current position. At most one call per step."""
        if self.normal is None:
            shape = (len(like), self.count, like.shape[2])
            self.normal = torch.randn(shape, generator=thread_generator())
        return self.normal[:, self.step : self.step + 1].to(like)


# The noise of decoding step by step in this thread, if any.
STEPS: Slot[StepNoise | None] = Slot("steps", None)


def use_step_noise(noise: StepNoise) -> contextlib.AbstractContextManager[None]:
    """Take dropout masks from `noise` in this thread inside the block."""
    return STEPS.set(noise)


def normal_noise(like: Tensor) -> Tensor:
    """Return standard normal noise with the shape (R, T, S) of `like`."""
    steps = STEPS.get()
    if steps is not None:
        return steps.normal_noise(like)
    return torch.randn(
        like.shape, generator=thread_generator(), dtype=like.dtype, device=like.device
    )


@contextlib.contextmanager
def repeatable_noise() -> Iterator[None]:
    """Reset the random generator of this thread after the block, so that its masks come again."""
    own = thread_generator()
    generator = torch.default_generator if own is None else own
    before = generator.get_state()
    with torch.random.fork_rng(enabled=torch.cuda.is_initialized()):
        yield
    generator.set_state(before)


@lru_cache(maxsize=4)
def _masks(rate: float) -> Tensor:
    """Return a mask (POOL,) with values 0 or 1 / (1 - rate), the same in every process."""
    generator = torch.Generator().manual_seed(0)
    keep = torch.empty(POOL).bernoulli_(1 - rate, generator=generator)
    return keep / (1 - rate)
