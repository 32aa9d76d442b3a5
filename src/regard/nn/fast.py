"""Fast paths: the same results with less overhead, as long as the weights do not change.

A module provides its fast path by `fast`; any other module is used as it is.
"""

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from regard.core import parallel


def unsharded_class(module: nn.Module) -> type:
    """Return the class of a module, without the wrapper class of FSDP."""
    if parallel.world_size() == 1:
        return type(module)
    from torch.distributed.fsdp import FSDPModule

    return next(kind for kind in type(module).__mro__ if not issubclass(kind, FSDPModule))


def claim(part: nn.Module, name: str, *args: Any) -> Any:
    """Return the attribute or method result `name` of a module; None if its class defines none.

    Inherited ones do not count: a subclass may compute something else, and must define it again.
    """
    if name not in vars(unsharded_class(part)):
        return None
    value = getattr(part, name)
    return value(*args) if callable(value) else value


def fast(module: nn.Module) -> Any:
    """Return the fast path of a module: the same interface and results."""
    return claim(module, "fast") or module


@lru_cache
def compiled(function: Callable[..., Any]) -> Any:
    """Return a function as TorchScript, without Python between operations; unchanged if that
    fails."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch recommends its compiler, which needs g++
            return torch.jit.script(function)
    except (AttributeError, OSError, RuntimeError, TypeError):  # a torch without it, or no source
        return function


def padding_bias(mask: Tensor, like: Tensor) -> Tensor | None:
    """Return the mask (B, S) as a bias of scores (B, 1, 1, S); None without padding."""
    if bool(mask.all()):
        return None
    bias = torch.zeros(mask.shape, dtype=like.dtype, device=like.device)
    return bias.masked_fill_(~mask, float("-inf"))[:, None, None]
