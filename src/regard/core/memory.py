"""Settings of malloc in glibc that keep freed memory.

By default glibc returns the memory of large tensors to the system, so each step has page faults.
"""

import ctypes
import sys
from typing import Any

import torch

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def tune_malloc() -> bool:
    """Make glibc allocate large blocks on its heap and keep them; return whether this worked.

    Also flush denormal numbers, which are slow on CPUs, to zero.
    """
    torch.set_flush_denormal(True)
    mallopt = _glibc("mallopt")
    if mallopt is None:
        return False
    largest, old_limit = 2**31 - 1, 2**25  # older versions of glibc reject more than old_limit
    mapped = mallopt(M_MMAP_THRESHOLD, largest) or mallopt(M_MMAP_THRESHOLD, old_limit)
    trimmed = mallopt(M_TRIM_THRESHOLD, largest)
    return bool(mapped) and bool(trimmed)


def trim_malloc() -> bool:
    """Release freed memory that glibc keeps; return whether any was released to the system."""
    trim = _glibc("malloc_trim")
    return trim is not None and bool(trim(0))


def _glibc(name: str) -> Any:
    """Return a function of glibc, or None without glibc."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
