"""The speed of this machine, measured in a fraction of a second."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

SHAPE = (384, 256, 1024)  # rows, inputs and outputs: a typical product of a small model
EFFICIENCY = 0.8  # speed of an update relative to that of a matrix product
HALF_GAIN = 1.35  # of an update in bfloat16, where products are about twice as fast
OVERHEAD = 0.012  # seconds per update, for small models on a CPU
SECONDS = 0.1  # of measurement per type


@dataclass(frozen=True)
class Machine:
    """How many multiply-adds a second this machine computes in matrix products.

    speed: in float32. half_speed: in bfloat16.
    """

    speed: float = 1e11
    half_speed: float = 0.0

    @property
    def half_gain(self) -> float:
        """Return how many times as fast products are in bfloat16 as in float32."""
        return self.half_speed / self.speed

    def seconds(self, products: float, is_half: bool) -> float:
        """Return the duration of an update with this many multiply-adds in its forward pass.

        The backward pass takes twice as many.
        """
        gain = HALF_GAIN if is_half else 1.0
        return OVERHEAD + 3 * products / (EFFICIENCY * gain * self.speed)

    def products(self, seconds: float, is_half: bool) -> float:
        """Return how many multiply-adds the forward pass of an update of this duration has."""
        return max(0.0, seconds - OVERHEAD) / (self.seconds(1.0, is_half) - OVERHEAD)


@lru_cache(maxsize=1)
def is_intel() -> bool:
    """Return whether the CPU is from Intel, for which MKL has its fastest kernels; Linux only."""
    try:
        return "GenuineIntel" in Path("/proc/cpuinfo").read_text(encoding="utf-8")[:4096]
    except OSError:
        return False


def measure_machine() -> Machine:
    """Return the speed of this machine."""
    import torch  # here, since --help must not wait for it

    if torch.cuda.is_available():
        return Machine(1e13, 1e13)
    threads = torch.get_num_threads()
    return Machine(*(threads * product_speed(kind) for kind in ("float32", "bfloat16")))


@lru_cache(maxsize=2)
def product_speed(precision: str) -> float:
    """Return how many multiply-adds a second one thread computes in a matrix product.

    The best of many short measurements, since other work on the machine slows down most of them.
    """
    import torch
    from torch.nn.functional import linear

    rows, inputs, outputs = SHAPE
    kind = getattr(torch, precision)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        x, weight = torch.ones(rows, inputs, dtype=kind), torch.ones(outputs, inputs, dtype=kind)
        linear(x[:8], weight)  # the first call prepares the kernel
        end, best = time.perf_counter() + SECONDS, float("inf")
        while (start := time.perf_counter()) < end:
            linear(x, weight)
            best = min(best, time.perf_counter() - start)
    finally:
        torch.set_num_threads(threads)
    return rows * inputs * outputs / best
