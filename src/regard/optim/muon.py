"""The optimizer Muon (orthogonalized momentum) of torch 2.9 or newer, made fast on a CPU."""

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from regard.core.errors import UserError
from regard.optim.descent import DECOUPLED, AdamLike
from regard.optim.groups import Factors, groups_of, hidden_matrices, is_on_cpu, trainable

TorchMuon: Any = getattr(torch.optim, "Muon", torch.optim.Optimizer)


class FullPrecision(TorchFunctionMode):
    """A context manager that ignores conversions to bfloat16 inside the block.

    Torch's Muon orthogonalizes updates in bfloat16. On a CPU without bfloat16 instructions,
    float32 is a hundred times faster, and also more precise.
    """

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function is Tensor.bfloat16:
            return args[0].clone()  # a copy, like bfloat16(), since Muon modifies it in place
        return function(*args, **(kwargs or {}))


class PreciseMuon(TorchMuon):
    """Muon in float32, for weights on a CPU."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Perform one update."""
        with FullPrecision():
            return super().step(closure)


class Muon(AdamLike):
    """Orthogonalized momentum for hidden matrices; AdamW for all else (Jordan et al. 2024)."""

    divisible: ClassVar[bool] = False

    kind: Literal["muon"] = "muon"
    momentum: float = Field(0.95, ge=0, lt=1, description="momentum coefficient")
    nesterov: bool = Field(True, description="use Nesterov momentum")
    iterations: int = Field(5, gt=0, lt=100, description="Newton-Schulz iterations")
    matrix_lr_factor: float = Field(
        10.0, gt=0, description="learning-rate factor for hidden matrices"
    )
    weight_decay: float = Field(0.01, ge=0, description=DECOUPLED)

    def build(self, model: nn.Module, lr: float, factors: Factors) -> list[torch.optim.Optimizer]:
        """Return Muon for hidden matrices; AdamW for embeddings, output layer, norms and biases.

        As in the original, tall matrices (m, n) have a learning rate factor of sqrt(m / n).
        """
        if not hasattr(torch.optim, "Muon"):
            raise UserError(
                "training.optimizer.kind=muon: expected torch 2.9 or newer, found "
                f"{torch.__version__}",
                help="pip install -U torch, or use adamw",
            )
        hidden = hidden_matrices(model)
        if not hidden:
            raise UserError(
                "training.optimizer.kind=muon: this model has no trainable hidden matrices",
                help="use adamw",
            )
        settings = self.model_dump(include={"momentum", "nesterov"}) | {"ns_steps": self.iterations}
        matrix_factors = {name: self.matrix_lr_factor * factors.get(name, 1.0) for name in hidden}
        matrices = groups_of(model, self.weight_decay, matrix_factors, hidden)
        kind = PreciseMuon if is_on_cpu(model) else TorchMuon
        built = [kind(matrices, lr=lr, adjust_lr_fn="original", **settings)]
        others = {name for name, _ in trainable(model)} - hidden
        if others:
            rest = groups_of(model, self.weight_decay, factors, others)
            built.append(torch.optim.AdamW(rest, lr=lr, betas=self.betas, eps=self.eps, fused=True))
        return built
