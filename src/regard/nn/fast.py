"""Fast paths: objects that replace a module, with the same results and less overhead.

A fast path is valid as long as the weights do not change. A module returns its fast path from a
method `fast`. Modules without this method run unchanged.
"""

import threading
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
    """Return the attribute `name`, or the result of the method `name`, of a module.

    Return None if the class itself does not define it. Inherited definitions do not count, because
    a subclass may compute something else.
    """
    if name not in vars(unsharded_class(part)):
        return None
    value = getattr(part, name)
    return value(*args) if callable(value) else value


def fast(module: nn.Module) -> Any:
    """Return the fast path of a module, or the module itself if it has none."""
    return claim(module, "fast") or module


_compiling = threading.Lock()  # TorchScript and the filters of warnings are not thread-safe


@lru_cache
def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function by TorchScript, to run it without Python between operations.

    Return the function unchanged if TorchScript fails.
    """
    try:
        with _compiling, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch recommends its compiler, which needs g++
            return torch.jit.script(function)
    except (AttributeError, OSError, RuntimeError, TypeError):  # no TorchScript, or no source
        return function


def padding_bias(mask: Tensor, like: Tensor) -> Tensor | None:
    """Return a bias of scores (B, 1, 1, S), -inf where mask (B, S) is False; None if all True."""
    if bool(mask.all()):
        return None
    bias = torch.zeros(mask.shape, dtype=like.dtype, device=like.device)
    return bias.masked_fill_(~mask, float("-inf"))[:, None, None]
