"""The measurement of one cell: a kernel at a length. Runs in a process of its own."""

import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch

from regard.core.memory import tune_malloc
from regard.experiments.crossover.attention_layer import (
    ROWS,
    WIDTH,
    Decoding,
    attend,
    build_layer,
    is_causal,
)

SECONDS = 0.3  # of measurement per pass
MAX_CALLS = 30
STEPS = 16  # decoding steps; the last one is at the full length
PIECE = 128  # positions that a past is extended by at once
SHORT = 32  # positions of the warm-up
MEGABYTE = 2**20


class Cell(NamedTuple):
    """A kernel at a length."""

    kernel: str
    length: int

    def __str__(self) -> str:
        return f"{self.kernel} at {self.length:,} positions"


class Cost(NamedTuple):
    """The cost of a cell: times in milliseconds, peak memory in megabytes.

    None: the kernel has no decoding steps.
    """

    forward_ms: float
    backward_ms: float
    step_ms: float | None
    peak_mb: float


def measure_cell(cell: Cell, threads: int) -> Cost:
    """Return the cost of a cell.

    The peak memory is that of a forward and a backward pass, without the memory of the process
    itself: a short sequence comes first, so that libraries and threads are loaded.
    """
    torch.set_num_threads(threads)
    tune_malloc()
    torch.manual_seed(0)
    _train(cell.kernel, min(SHORT, cell.length), calls=1)
    before = _peak_bytes()
    forward, backward = _train(cell.kernel, cell.length, MAX_CALLS)
    peak = (_peak_bytes() - before) / MEGABYTE
    step = _step(cell.kernel, cell.length) if is_causal(cell.kernel) else None
    return Cost(
        round(1000 * forward, 4),
        round(1000 * backward, 4),
        None if step is None else round(1000 * step, 4),
        round(peak, 1),
    )


def _train(kernel: str, length: int, calls: int) -> tuple[float, float]:
    """Return the seconds of the fastest forward and of the fastest backward pass."""
    layer = build_layer(kernel, length, causal=False)
    x = torch.randn(ROWS, length, WIDTH, requires_grad=True)
    forwards: list[float] = []
    backwards: list[float] = []
    end = time.perf_counter() + 2 * SECONDS
    while not forwards or (len(forwards) < calls and time.perf_counter() < end):
        began = time.perf_counter()
        total = attend(layer, x).sum()
        middle = time.perf_counter()
        total.backward()
        backwards.append(time.perf_counter() - middle)
        forwards.append(middle - began)
    return min(forwards), min(backwards)


@torch.inference_mode()
def _step(kernel: str, length: int) -> float | None:
    """Return the seconds of the fastest decoding step at the end of a sequence.

    None if the sequence is too short for a step after the first, which may copy the past.
    """
    decoding = Decoding(build_layer(kernel, length, causal=True).eval())
    x = torch.randn(ROWS, length, WIDTH)
    prefix = max(1, length - STEPS)
    for piece in x[:, :prefix].split(PIECE, 1):
        decoding.read(piece)
    times = [_seconds(partial(decoding.read, x[:, at : at + 1])) for at in range(prefix, length)]
    return min(times[1:], default=None)


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _peak_bytes() -> int:
    """Return the largest memory of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
