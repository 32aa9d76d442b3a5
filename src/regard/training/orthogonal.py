"""Optimisers whose steps are orthogonal matrices: Muon, torch's and by blocks."""

from typing import Any, Literal

import torch
from pydantic import Field
from torch import nn

from regard.errors import UserError
from regard.training.block_muon import Orthogonal, blocks
from regard.training.descent import DECOUPLED, AdamLike
from regard.training.groups import Factors, groups_of, hidden_matrices, on_cpu, trained


class Muon(AdamLike):
    """Momentum made orthogonal, for hidden matrices; AdamW for all else (Jordan et al. 2024)."""

    kind: Literal["muon"] = "muon"
    momentum: float = Field(0.95, ge=0, lt=1, description="share of the last step that goes on")
    nesterov: bool = Field(True, description="the gradient is taken after the momentum's step")
    iterations: int = Field(5, gt=0, lt=100, description="of Newton and Schulz, to orthogonality")
    hidden_lr: float = Field(
        10.0, gt=0, description="rate of hidden matrices, as a multiple of that of all else"
    )
    weight_decay: float = Field(0.01, ge=0, description=DECOUPLED)

    def build(self, model: nn.Module, lr: float, factors: Factors) -> list[torch.optim.Optimizer]:
        """Muon for hidden matrices; AdamW for embeddings, output layer, norms and biases."""
        hidden = self._hidden(model)
        shares = {name: self.hidden_lr * factors.get(name, 1.0) for name in hidden}
        matrices = groups_of(model, self.weight_decay, shares, hidden)
        others = {name for name, _ in trained(model)} - hidden
        rest = groups_of(model, self.weight_decay, factors, others)
        adam = torch.optim.AdamW
        more = [adam(rest, lr=lr, betas=self.betas, eps=self.eps, fused=True)] if rest else []
        return [self._orthogonal(model, matrices, lr), *more]

    def _hidden(self, model: nn.Module) -> set[str]:
        """The names of the matrices that it moves."""
        hidden = hidden_matrices(model)
        if not hidden:
            raise UserError(
                f"training.optimizer.kind={self.kind}: it moves hidden matrices, and this model "
                "has none to train (only embeddings, an output layer, norms and biases); "
                "choose adamw"
            )
        return hidden

    def _orthogonal(
        self, model: nn.Module, groups: list[dict[str, Any]], lr: float
    ) -> torch.optim.Optimizer:
        """Torch's Muon."""
        if not hasattr(torch.optim, "Muon"):
            raise UserError(
                "training.optimizer.kind=muon: needs torch 2.9 or newer, this is "
                f"{torch.__version__}; pip install -U torch, or choose adamw"
            )
        from regard.training.muon import build_muon

        settings = self.model_dump(include={"momentum", "nesterov"}) | {"ns_steps": self.iterations}
        return build_muon(groups, lr, on_cpu(model), **settings)


class BlockMuon(Muon):
    """Muon that takes gates, queries, keys and values apart, and like matrices together.

    Torch's takes each weight as one matrix, and one after the other; see block_muon.py.
    """

    kind: Literal["block_muon"] = "block_muon"  # type: ignore[assignment]
    hidden_lr: float = Field(
        1.0, gt=0, description="rate of hidden matrices, as a multiple of that of all else"
    )

    def _orthogonal(
        self, model: nn.Module, groups: list[dict[str, Any]], lr: float
    ) -> torch.optim.Optimizer:
        settings = self.model_dump(include={"momentum", "nesterov", "iterations"})
        return Orthogonal(groups, lr, blocks=blocks(model), **settings)
