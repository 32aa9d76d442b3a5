"""Fast twins: what a module computes while its weights do not change, with less around it.

A module that has one says so by `fast`; any other is its own twin, slower and right.
"""

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn


def fast(module: nn.Module) -> Any:
    """The fast twin of a module: called as it is, with the same numbers."""
    own: Any = getattr(module, "fast", None)
    return module if own is None else own()


@lru_cache
def compiled(function: Callable[..., Any]) -> Any:
    """A plain function as TorchScript, in which Python does nothing between two operations; as it
    is where that cannot be."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch recommends its compiler, which needs g++
            return torch.jit.script(function)
    except (AttributeError, OSError, RuntimeError, TypeError):  # a torch without it, or no source
        return function


def padding_bias(mask: Tensor, like: Tensor) -> Tensor | None:
    """The mask (B, S) as what is added to scores, (B, 1, 1, S); None where there is no padding."""
    if bool(mask.all()):
        return None
    bias = torch.zeros(mask.shape, dtype=like.dtype, device=like.device)
    return bias.masked_fill_(~mask, float("-inf"))[:, None, None]
