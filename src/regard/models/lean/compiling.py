"""Functions of small operations without Python in between, where torch can compile them.

What stays between two operations is then a microsecond.
"""

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch


@lru_cache
def compiled(function: Callable[..., Any]) -> Any:
    """A plain function as TorchScript; as it is where that cannot be."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch recommends its compiler, which needs g++
            return torch.jit.script(function)
    except (AttributeError, OSError, RuntimeError, TypeError):  # a torch without it, or no source
        return function
