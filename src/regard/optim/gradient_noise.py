"""The gradient noise scale: the batch size at which noise and signal of the gradient are equal.

The gradients g and g' of two batches of size B share only the true gradient G. So their inner
product g g' estimates the signal |G|^2. The rest of |g|^2 is noise, which falls with B. This gives
B_noise = B (|g|^2 - g g') / g g', the simple noise scale of McCandlish et al. (2018, 2.2). Far
below B_noise, larger batches lose nothing. Far above B_noise, they waste time.
"""

from torch import Tensor

from regard.core import parallel

FIRST, SECOND = 4, 5  # the two of every ten updates whose gradients are compared
DECAY = 0.9  # decay of the running means


def measure(
    step: int, gradients: list[Tensor], previous: list[Tensor], means: list[float], count: float
) -> tuple[list[Tensor], list[float]]:
    """Return the gradients to keep, and the running means of |g|^2, g g' and the batch size.

    step: the index of this update, from 1. previous, means: the results of the previous call.
    count: the size of this batch.
    """
    if step % 10 == FIRST:
        return [gradient.detach().clone() for gradient in gradients], means
    if step % 10 != SECOND or len(previous) != len(gradients):
        return [], means
    power = (parallel.dot(gradients, gradients) + parallel.dot(previous, previous)) / 2
    current = [power, parallel.dot(gradients, previous), count]
    if not means:
        return [], current
    return [], [DECAY * old + (1 - DECAY) * new for old, new in zip(means, current, strict=True)]


def scale(means: list[float]) -> float | None:
    """Return the noise scale in tokens; None if unknown, or if noise hides the signal."""
    if not means or means[1] <= 0:
        return None
    power, signal, count = means
    return count * max(0.0, power - signal) / signal
