"""Optimisers: torch's own, with groups that leave norms, biases and embeddings undecayed."""

from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import nn

from regard.models.frontend import Embedding
from regard.models.generator import Head
from regard.options import Options

Factors = dict[str, float]  # by name: the share of the learning rate, where it is not 1


class Auto(Options):
    """Chosen from model and objective: a formula where there is one, else adamw."""

    kind: Literal["auto"] = "auto"

    def build(self, model: nn.Module, lr: float, factors: Factors) -> list[torch.optim.Optimizer]:
        """None: the kind must be chosen first."""
        raise AssertionError("the optimiser was not chosen")


class Exact(Options):
    """No optimiser: the best weights by a formula, in one step."""

    kind: Literal["exact"] = "exact"

    def build(self, model: nn.Module, lr: float, factors: Factors) -> list[torch.optim.Optimizer]:
        """None."""
        return []


class AdamLike(Options):
    """What the Adam family has in common."""

    betas: tuple[float, float] = Field((0.9, 0.98), description="decay of the two averages")
    eps: float = Field(1e-9, gt=0, description="added to the denominator")


class Adam(AdamLike):
    """Adam (Kingma and Ba 2015)."""

    kind: Literal["adam"] = "adam"

    def build(self, model: nn.Module, lr: float, factors: Factors) -> list[torch.optim.Optimizer]:
        """The optimiser of a model's parameters."""
        groups = _groups(model, 0.0, factors)
        return [torch.optim.Adam(groups, lr=lr, betas=self.betas, eps=self.eps, fused=True)]


class AdamW(AdamLike):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""

    kind: Literal["adamw"] = "adamw"
    weight_decay: float = Field(0.01, ge=0, description="decay of matrices")

    def build(self, model: nn.Module, lr: float, factors: Factors) -> list[torch.optim.Optimizer]:
        """The optimiser of a model's parameters."""
        groups = _groups(model, self.weight_decay, factors)
        return [torch.optim.AdamW(groups, lr=lr, betas=self.betas, eps=self.eps, fused=True)]


def _groups(model: nn.Module, decay: float, factors: Factors) -> list[dict[str, Any]]:
    """Matrices, which decay, and everything else (and embeddings), which does not.

    Weights with another share of the learning rate have groups of their own.
    """
    spared = (part for part in model.modules() if isinstance(part, Embedding | Head))
    embedded = {id(weight) for part in spared for weight in part.parameters()}
    groups: dict[tuple[float, float], list[nn.Parameter]] = {(decay, 1.0): [], (0.0, 1.0): []}
    for name, parameter in model.named_parameters():  # tied weights once
        if parameter.requires_grad:
            plain = parameter.dim() < 2 or id(parameter) in embedded
            key = (0.0 if plain else decay, factors.get(name, 1.0))
            groups.setdefault(key, []).append(parameter)
    return [
        {"params": members, "weight_decay": decay, "factor": factor}
        for (decay, factor), members in groups.items()
        if members
    ]


Optimizer = Annotated[Auto | Exact | Adam | AdamW, Field(discriminator="kind")]
