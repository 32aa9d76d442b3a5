"""Fast paths: objects that replace a module, with the same results and less overhead.

A fast path is valid as long as the weights do not change. A module returns its fast path from a
method `fast`. Modules without this method run unchanged.
"""

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator
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


@contextlib.contextmanager
def warming_up() -> Iterator[None]:
    """Run compiled functions for the first time inside the block, without TorchScript's profiling.

    Profiling takes three tenths of a second in every process that predicts, and gains nothing
    here. A plan that is made in the block is kept, also by processes that are forked later.
    """
    set_mode = getattr(torch._C, "_jit_set_profiling_mode", lambda enabled: True)
    before = set_mode(False)
    try:
        with torch.inference_mode():
            yield
    finally:
        set_mode(before)


def padding_bias(mask: Tensor, like: Tensor) -> Tensor | None:
    """Return a bias of scores (B, 1, 1, S), -inf where mask (B, S) is False; None if all True."""
    if bool(mask.all()):
        return None
    bias = torch.zeros(mask.shape, dtype=like.dtype, device=like.device)
    return bias.masked_fill_(~mask, float("-inf"))[:, None, None]
