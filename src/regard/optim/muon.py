"""Torch's Muon (2.9 or newer), at the speed it should have on a CPU."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


class FullPrecision(TorchFunctionMode):
    """Within it, what is asked to become bfloat16 stays as precise as it is.

    Torch's Muon makes updates orthogonal in bfloat16. A CPU without instructions for that is
    a hundred times slower at it than at float32, which is more exact besides.
    """

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function is Tensor.bfloat16:
            return args[0].clone()  # as bfloat16() does, since Muon goes on in place
        return function(*args, **(kwargs or {}))


class PreciseMuon(torch.optim.Muon):
    """Muon for weights on a CPU."""

    @torch.no_grad()
    def step(  # type: ignore[override]
        self, closure: Callable[[], float] | None = None
    ) -> float | None:
        """One step."""
        with FullPrecision():
            return super().step(closure)


def build_muon(
    groups: list[dict[str, Any]], lr: float, on_cpu: bool, **settings: Any
) -> torch.optim.Optimizer:
    """Muon for these groups; the longer side of a matrix raises its rate, as in the paper."""
    kind = PreciseMuon if on_cpu else torch.optim.Muon
    return kind(groups, lr=lr, adjust_lr_fn="original", **settings)
