"""The gradient noise scale: the batch size at which noise and signal are equal.

The gradients of two batches share only the true gradient, so their inner product estimates the
signal |G|^2, and the rest of a squared norm is noise, which falls with the batch size:
B_noise = B (|g|^2 - g g') / g g' (the simple noise scale of McCandlish et al. 2018, 2.2). Far
below it, larger batches lose nothing; far above it, they waste time.
"""

from torch import Tensor

from regard.core import parallel

FIRST, SECOND = 4, 5  # of every ten updates: whose gradients are compared
DECAY = 0.9  # of the running means


def measure(
    step: int, gradients: list[Tensor], previous: list[Tensor], means: list[float], count: float
) -> tuple[list[Tensor], list[float]]:
    """Return the gradients to keep, and the running means of |g|^2, g g' and the batch size.

    step: index of this update, from 1; previous, means: results of the last call.
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
