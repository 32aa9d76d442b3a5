"""Fast paths: what a module computes while its weights do not change, with less overhead.

A module offers its fast path by `fast`; any other module is its own: slower, and correct.
"""

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from regard.core import parallel


def unsharded_class(module: nn.Module) -> type:
    """The class of a module, without the one that sharding puts in front of it."""
    if parallel.world_size() == 1:
        return type(module)
    from torch.distributed.fsdp import FSDPModule

    return next(kind for kind in type(module).__mro__ if not issubclass(kind, FSDPModule))


def claim(part: nn.Module, name: str, *given: Any) -> Any:
    """What a part says of itself by the method or attribute `name`; None if its own class has none.

    An inherited one does not count: a subclass may compute something else, and must repeat it.
    """
    if name not in vars(unsharded_class(part)):
        return None
    own = getattr(part, name)
    return own(*given) if callable(own) else own


def fast(module: nn.Module) -> Any:
    """The fast path of a module: called as the module is, with the same numbers."""
    return claim(module, "fast") or module


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
