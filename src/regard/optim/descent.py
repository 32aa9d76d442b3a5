"""The base class of optimizers, and the Adam family."""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import nn

from regard.core.options import Options
from regard.optim.groups import Factors, Group, groups_of

L2 = "L2 penalty of matrices, added to the gradient; not applied to norms, biases and embeddings"
DECOUPLED = "decoupled weight decay of matrices; not applied to norms, biases and embeddings"


class Descent(Options):
    """The base class of optimizers."""

    lr_factor: ClassVar[float] = 1.0  # default learning rate, relative to AdamW
    stepwise: ClassVar[bool] = True  # False for closed-form solutions
    divisible: ClassVar[bool] = True  # whether it supports sharded weights (fsdp)

    def default_lr(self, adamw: float) -> float:
        """Return the default learning rate. adamw: the default learning rate of AdamW."""
        return self.lr_factor * adamw

    def build(self, model: nn.Module, lr: float, factors: Factors) -> list[torch.optim.Optimizer]:
        """Return the optimizers of a model: one for all parameters, unless overridden."""
        decay: float = getattr(self, "weight_decay", 0.0)
        return [self.optimizer(groups_of(model, decay, factors), lr, model)]

    def optimizer(self, groups: list[Group], lr: float, model: nn.Module) -> torch.optim.Optimizer:
        """Return the optimizer of these parameter groups."""
        raise NotImplementedError


class AdamLike(Descent):
    """The base class of the Adam family."""

    betas: tuple[float, float] = Field((0.9, 0.98), description="decay of the two moment estimates")
    eps: float = Field(1e-9, gt=0, description="added to the denominator")


class Adam(AdamLike):
    """Adam (Kingma and Ba 2015); betas and eps as in Vaswani et al. (2017, 5.3)."""

    kind: Literal["adam"] = "adam"
    weight_decay: float = Field(0.0, ge=0, description=L2)

    def optimizer(self, groups: list[Group], lr: float, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.Adam(groups, lr=lr, betas=self.betas, eps=self.eps, fused=True)


class AdamW(AdamLike):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""

    kind: Literal["adamw"] = "adamw"
    weight_decay: float = Field(0.01, ge=0, description=DECOUPLED)

    def optimizer(self, groups: list[Group], lr: float, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.AdamW(groups, lr=lr, betas=self.betas, eps=self.eps, fused=True)
