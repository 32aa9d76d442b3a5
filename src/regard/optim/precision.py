"""Mixed precision: products in 16 bits, weights and sums in 32 bits (Micikevicius et al. 2018)."""

import contextlib
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

import torch
from torch import nn

Precision = Literal["float32", "bfloat16", "float16"]
GROWTH_INTERVAL = 2000  # updates without overflow before the loss scale doubles
MIN_SCALE = 1e-4  # a smaller loss scale means that training diverged


@contextlib.contextmanager
def autocast(precision: Precision | None, device: torch.device) -> Iterator[None]:
    """Compute matrix products with this precision inside the block."""
    if precision in (None, "float32"):
        yield
        return
    kind = getattr(torch, precision)
    plain = device.type == "cpu" and not has_fused_recurrence(kind)
    with warnings.catch_warnings(), torch.autocast(device.type, kind):
        warnings.simplefilter("ignore", UserWarning)  # about ops that the flag does not affect
        with torch.backends.mkldnn.flags(enabled=not plain):
            yield


@lru_cache(maxsize=2)
def has_fused_recurrence(kind: torch.dtype) -> bool:
    """Return whether oneDNN supports LSTMs of this type on this CPU."""
    try:  # without changing the random state of training
        with torch.random.fork_rng(devices=[]), torch.autocast("cpu", kind):
            nn.LSTM(2, 2)(torch.zeros(1, 1, 2))
    except RuntimeError:
        return False
    return True


def rescale(scale: float, steps: int, is_finite: bool) -> tuple[float, int]:
    """Return the new loss scale, and the number of updates since the last change.

    The scale is halved after an overflow, and doubled after many updates without overflow.
    is_finite: whether the gradients of this update are finite.
    """
    if not is_finite:
        return scale / 2, 0
    return (scale * 2, 0) if steps + 1 == GROWTH_INTERVAL else (scale, steps + 1)
