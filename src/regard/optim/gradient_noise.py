"""How noisy gradients are: the batch size at which noise and signal are alike.

The gradients of two batches have the true gradient in common and nothing else, so their inner
product is the signal |G|^2, and what is left of a squared norm is noise, which falls with the size
of the batch: B_noise = B (|g|^2 - g g') / g g' (the simple noise scale of McCandlish et al. 2018,
2.2). Batches far below it lose nothing by being larger; far above, time is wasted.
"""

from torch import Tensor

from regard.core import parallel

FIRST, SECOND = 4, 5  # of every ten updates: whose gradient is kept, and which is compared with it
KEEP = 0.9  # of the running means at each comparison


def measure(
    step: int, gradients: list[Tensor], kept: list[Tensor], means: list[float], count: float
) -> tuple[list[Tensor], list[float]]:
    """What is kept of this update's gradients, and the means of |g|^2, g g' and the batch size.

    step: the number of this update; kept, means: what the call before gave.
    """
    if step % 10 == FIRST:
        return [gradient.detach().clone() for gradient in gradients], means
    if step % 10 != SECOND or len(kept) != len(gradients):
        return [], means
    power = (parallel.dot(gradients, gradients) + parallel.dot(kept, kept)) / 2
    fresh = [power, parallel.dot(gradients, kept), count]
    if not means:
        return [], fresh
    return [], [KEEP * old + (1 - KEEP) * new for old, new in zip(means, fresh, strict=True)]


def scale(means: list[float]) -> float | None:
    """The noise scale in tokens; None before it is known, or where noise hides the signal."""
    if not means or means[1] <= 0:
        return None
    power, signal, count = means
    return count * max(0.0, power - signal) / signal
