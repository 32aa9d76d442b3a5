"""Keeping freed memory: glibc otherwise maps and faults every large tensor anew each step."""

import ctypes
import sys
from typing import Any

import torch

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> bool:
    """Tells glibc to serve large blocks from its heap and to keep them; False elsewhere.

    Denormal numbers, slow on CPUs, are flushed to zero as well.
    """
    torch.set_flush_denormal(True)
    mallopt = _glibc("mallopt")
    if mallopt is None:
        return False
    largest, old_limit = 2**31 - 1, 2**25  # older versions of glibc refuse more than the second
    mapped = mallopt(M_MMAP_THRESHOLD, largest) or mallopt(M_MMAP_THRESHOLD, old_limit)
    trimmed = mallopt(M_TRIM_THRESHOLD, largest)
    return bool(mapped) and bool(trimmed)


def give_freed_memory_back() -> bool:
    """Returns what glibc keeps to the system, after a large part of it was freed for good."""
    trim = _glibc("malloc_trim")
    return trim is not None and bool(trim(0))


def _glibc(name: str) -> Any:
    """A function of glibc; None elsewhere."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
