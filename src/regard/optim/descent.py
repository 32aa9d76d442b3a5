"""What optimizers have in common, and the Adam family."""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import nn

from regard.core.options import Options
from regard.optim.groups import Factors, Group, groups_of

L2 = "added to the gradient (L2) of matrices, not decoupled from the rate; norms, biases and \
embeddings are spared"
DECOUPLED = "share of the matrices, times the rate, that is taken off at each step; norms, biases \
and embeddings are spared"


class Descent(Options):
    """What all optimizers have in common."""

    times: ClassVar[float] = 1.0  # the rate that suits it, as a multiple of AdamW's
    stepwise: ClassVar[bool] = True  # whether it trains step by step, not by a formula
    divisible: ClassVar[bool] = True  # whether it works with parts of weights, as fsdp has them

    def default_lr(self, adamw: float) -> float:
        """The learning rate to begin with, where this one suits AdamW."""
        return self.times * adamw

    def build(self, model: nn.Module, lr: float, factors: Factors) -> list[torch.optim.Optimizer]:
        """The optimizers of a model's parameters: one for all, unless overridden."""
        decay: float = getattr(self, "weight_decay", 0.0)
        return [self.optimizer(groups_of(model, decay, factors), lr, model)]

    def optimizer(self, groups: list[Group], lr: float, model: nn.Module) -> torch.optim.Optimizer:
        """The optimizer of these groups of weights."""
        raise NotImplementedError


class AdamLike(Descent):
    """What the Adam family has in common."""

    betas: tuple[float, float] = Field((0.9, 0.98), description="decay of the two averages")
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
