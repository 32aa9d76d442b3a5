"""Optimisers: torch's own, with groups that leave norms, biases and embeddings undecayed."""

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import nn

from regard.models.generator import Embedding, Head
from regard.options import Options


class AdamLike(Options):
    """What the Adam family has in common."""

    betas: tuple[float, float] = Field((0.9, 0.98), description="decay of the two averages")
    eps: float = Field(1e-9, gt=0, description="added to the denominator")


class Adam(AdamLike):
    """Adam (Kingma and Ba 2015)."""

    kind: Literal["adam"] = "adam"

    def build(self, model: nn.Module, lr: float) -> torch.optim.Optimizer:
        """The optimiser of a model's parameters."""
        return torch.optim.Adam(
            _groups(model, 0.0), lr=lr, betas=self.betas, eps=self.eps, fused=True
        )


class AdamW(AdamLike):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""

    kind: Literal["adamw"] = "adamw"
    weight_decay: float = Field(0.01, ge=0, description="decay of matrices")

    def build(self, model: nn.Module, lr: float) -> torch.optim.Optimizer:
        """The optimiser of a model's parameters."""
        groups = _groups(model, self.weight_decay)
        return torch.optim.AdamW(groups, lr=lr, betas=self.betas, eps=self.eps, fused=True)


def _groups(model: nn.Module, decay: float) -> list[dict]:
    """Matrices, which decay, and everything else (and embeddings), which does not."""
    spared = (part for part in model.modules() if isinstance(part, Embedding | Head))
    embedded = {id(weight) for part in spared for weight in part.parameters()}
    everything = list(model.parameters())  # tied weights once
    plain = [p for p in everything if p.dim() < 2 or id(p) in embedded]
    matrices = [p for p in everything if p.dim() >= 2 and id(p) not in embedded]
    return [
        {"params": matrices, "weight_decay": decay},
        {"params": plain, "weight_decay": 0.0},
    ]


Optimizer = Annotated[Adam | AdamW, Field(discriminator="kind")]
