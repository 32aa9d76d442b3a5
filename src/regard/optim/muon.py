"""Muon: momentum made orthogonal, torch's own (2.9 or newer), at full speed on a CPU."""

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from regard.core.errors import UserError
from regard.optim.descent import DECOUPLED, AdamLike
from regard.optim.groups import Factors, groups_of, hidden_matrices, on_cpu, trained

TorchMuon: Any = getattr(torch.optim, "Muon", torch.optim.Optimizer)


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


class PreciseMuon(TorchMuon):
    """Muon for weights on a CPU."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """One step."""
        with FullPrecision():
            return super().step(closure)


class Muon(AdamLike):
    """Momentum made orthogonal, for hidden matrices; AdamW for all else (Jordan et al. 2024)."""

    divisible: ClassVar[bool] = False

    kind: Literal["muon"] = "muon"
    momentum: float = Field(0.95, ge=0, lt=1, description="share of the last step that goes on")
    nesterov: bool = Field(True, description="the gradient is taken after the momentum's step")
    iterations: int = Field(5, gt=0, lt=100, description="of Newton and Schulz, to orthogonality")
    matrix_lr_factor: float = Field(
        10.0, gt=0, description="rate of hidden matrices, as a multiple of that of all else"
    )
    weight_decay: float = Field(0.01, ge=0, description=DECOUPLED)

    def build(self, model: nn.Module, lr: float, factors: Factors) -> list[torch.optim.Optimizer]:
        """Muon for hidden matrices; AdamW for embeddings, output layer, norms and biases.

        The longer side of a matrix raises its rate, as in the paper.
        """
        if not hasattr(torch.optim, "Muon"):
            raise UserError(
                "training.optimizer.kind=muon: needs torch 2.9 or newer, this is "
                f"{torch.__version__}; pip install -U torch, or choose adamw"
            )
        hidden = hidden_matrices(model)
        if not hidden:
            raise UserError(
                "training.optimizer.kind=muon: it moves hidden matrices, and this model has none "
                "to train (only embeddings, an output layer, norms and biases); choose adamw"
            )
        settings = self.model_dump(include={"momentum", "nesterov"}) | {"ns_steps": self.iterations}
        shares = {name: self.matrix_lr_factor * factors.get(name, 1.0) for name in hidden}
        matrices = groups_of(model, self.weight_decay, shares, hidden)
        kind = PreciseMuon if on_cpu(model) else TorchMuon
        built = [kind(matrices, lr=lr, adjust_lr_fn="original", **settings)]
        others = {name for name, _ in trained(model)} - hidden
        if others:
            rest = groups_of(model, self.weight_decay, factors, others)
            built.append(torch.optim.AdamW(rest, lr=lr, betas=self.betas, eps=self.eps, fused=True))
        return built
