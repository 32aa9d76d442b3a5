"""A limit on what the constructors of a model may allocate."""

import math
from typing import Any

from torch.overrides import TorchFunctionMode

MIN_CALLS, MAX_CALLS_PER_TENSOR = 10_000, 200  # calls of torch functions
MIN_NUMBERS, MAX_COPIES = 16_000_000, 4  # tied weights are created first and then dropped
BY_SIZE = frozenset({"empty", "zeros", "ones", "rand", "randn", "full"})
BY_RANGE = frozenset({"arange", "linspace", "eye"})


class BuildTooLarge(Exception):
    """A model needs more calls or memory than its weights file justifies."""


class BuildLimit(TorchFunctionMode):
    """Limit the calls of torch functions inside the block, and the tensors that they create.

    tensors, numbers: how many of them the weights file has.
    """

    def __init__(self, tensors: int, numbers: int) -> None:
        super().__init__()
        self.calls = MIN_CALLS + MAX_CALLS_PER_TENSOR * tensors
        self.numbers = MIN_NUMBERS + MAX_COPIES * numbers

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.calls -= 1
        self.numbers -= _created(getattr(func, "__name__", ""), args, kwargs or {})
        if self.calls < 0 or self.numbers < 0:
            raise BuildTooLarge
        return func(*args, **(kwargs or {}))


def _created(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Return how many numbers a function creates; 0 if it depends on another tensor."""
    if name in BY_RANGE:
        return max((abs(int(one)) for one in args if isinstance(one, int | float)), default=0)
    if name not in BY_SIZE:
        return 0
    size = kwargs.get("size", args)
    if size and not isinstance(size[0], int):
        size = size[0]
    return math.prod(abs(one) for one in size)
