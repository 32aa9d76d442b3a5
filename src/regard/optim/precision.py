"""Half precision: products in 16 bits, weights and sums in 32 (Micikevicius et al. 2018)."""

import contextlib
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

import torch
from torch import nn

Precision = Literal["float32", "bfloat16", "float16"]
GROWTH = 2000  # steady updates after which the scale of the loss is doubled
SMALLEST = 1e-4  # a scale below which nothing helps any more


@contextlib.contextmanager
def products(precision: Precision, device: torch.device) -> Iterator[None]:
    """In here matrix products have this precision."""
    if precision == "float32":
        yield
        return
    kind = getattr(torch, precision)
    plain = device.type == "cpu" and not _fused_recurrence(kind)
    with warnings.catch_warnings(), torch.autocast(device.type, kind):
        warnings.simplefilter("ignore", UserWarning)  # of what the flag leaves alone
        with torch.backends.mkldnn.flags(enabled=not plain):
            yield


@lru_cache(maxsize=2)
def _fused_recurrence(kind: torch.dtype) -> bool:
    """Whether oneDNN has LSTMs of this kind on this processor; many have none."""
    try:  # with the noise of training left as it is
        with torch.random.fork_rng(devices=[]), torch.autocast("cpu", kind):
            nn.LSTM(2, 2)(torch.zeros(1, 1, 2))
    except RuntimeError:
        return False
    return True


def rescaled(scale: float, steady: int, finite: bool) -> tuple[float, int]:
    """The scale of the loss and the updates since it changed, after an update.

    Half of it where the gradient overflowed, and twice after many updates that did not.
    """
    if not finite:
        return scale / 2, 0
    return (scale * 2, 0) if steady + 1 == GROWTH else (scale, steady + 1)
