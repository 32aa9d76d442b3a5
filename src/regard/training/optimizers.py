"""Optimisers: torch's own, with groups that leave norms, biases and embeddings undecayed.

`build` gives a list: mostly of one, of two where matrices and the rest are treated differently.
Each group of weights has a `factor`, its share of the learning rate; the loop sets the rate of a
group to the schedule's times that.
"""

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field, model_validator
from torch import nn

from regard.errors import UserError
from regard.options import Options
from regard.training.block_muon import Orthogonal, blocks
from regard.training.groups import Factors, groups_of, hidden_matrices, on_cpu, trained

L2 = "added to the gradient (L2) of matrices, not decoupled from the rate; norms, biases and \
embeddings are spared"
DECOUPLED = "share of the matrices, times the rate, that is taken off at each step; norms, biases \
and embeddings are spared"


class Descent(Options):
    """What all optimisers have in common."""

    times: ClassVar[float] = 1.0  # the rate that suits it, as a multiple of AdamW's

    def default_lr(self, adamw: float) -> float:
        """The learning rate to begin with, where this one suits AdamW."""
        return self.times * adamw

    def build(self, model: nn.Module, lr: float, factors: Factors) -> list[torch.optim.Optimizer]:
        """The optimisers of a model's parameters."""
        raise NotImplementedError


class Auto(Descent):
    """Chosen from model and objective: a formula where there is one, else adamw."""

    kind: Literal["auto"] = "auto"


class Exact(Descent):
    """No optimiser: the best weights by a formula, in one step."""

    kind: Literal["exact"] = "exact"

    def build(self, model: nn.Module, lr: float, factors: Factors) -> list[torch.optim.Optimizer]:
        """None."""
        return []


class Sgd(Descent):
    """Stochastic gradient descent (Robbins and Monro 1951), plain or with momentum."""

    times: ClassVar[float] = 500.0

    kind: Literal["sgd"] = "sgd"
    momentum: float = Field(0.0, ge=0, lt=1, description="share of the last step that goes on")
    nesterov: bool = Field(False, description="the gradient is taken after the momentum's step")
    weight_decay: float = Field(0.0, ge=0, description=L2)

    @model_validator(mode="after")
    def _something_to_look_ahead_with(self) -> "Sgd":
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov needs a momentum; set momentum=0.9")
        return self

    def default_lr(self, adamw: float) -> float:
        """The learning rate to begin with; steps add up to 1 / (1 - momentum) times as much."""
        return self.times * adamw * (1 - self.momentum)

    def build(self, model: nn.Module, lr: float, factors: Factors) -> list[torch.optim.Optimizer]:
        """The optimiser of a model's parameters."""
        groups = groups_of(model, self.weight_decay, factors)
        # the fused kernel fails where a weight has its first gradient later than others
        fast = {"foreach": True} if self.momentum else {"fused": True}
        return [
            torch.optim.SGD(groups, lr=lr, momentum=self.momentum, nesterov=self.nesterov, **fast)
        ]


class Momentum(Sgd):
    """Descent with momentum, the heavy ball (Polyak 1964)."""

    kind: Literal["momentum"] = "momentum"  # type: ignore[assignment]
    momentum: float = Field(0.9, gt=0, lt=1, description="share of the last step that goes on")


class Nesterov(Momentum):
    """Descent with momentum and a look ahead (Nesterov 1983; Sutskever et al. 2013)."""

    kind: Literal["nesterov"] = "nesterov"  # type: ignore[assignment]
    nesterov: Literal[True] = Field(True, description="as the name says")


class Adagrad(Descent):
    """Rates that fall where gradients were large, summed from the start (Duchi et al. 2011)."""

    times: ClassVar[float] = 10.0

    kind: Literal["adagrad"] = "adagrad"
    eps: float = Field(1e-10, gt=0, description="added to the denominator")
    weight_decay: float = Field(0.0, ge=0, description=L2)

    def build(self, model: nn.Module, lr: float, factors: Factors) -> list[torch.optim.Optimizer]:
        """The optimiser of a model's parameters."""
        groups = groups_of(model, self.weight_decay, factors)
        return [torch.optim.Adagrad(groups, lr=lr, eps=self.eps, fused=on_cpu(model) or None)]


class RmsProp(Descent):
    """Rates by a moving average of squared gradients (Tieleman and Hinton 2012, lecture 6.5)."""

    kind: Literal["rmsprop"] = "rmsprop"
    alpha: float = Field(0.9, ge=0, lt=1, description="decay of the average of squares")
    eps: float = Field(1e-8, gt=0, description="added to the denominator")
    momentum: float = Field(0.0, ge=0, lt=1, description="share of the last step that goes on")
    centered: bool = Field(False, description="by the variance, not the square (Graves 2013)")
    weight_decay: float = Field(0.0, ge=0, description=L2)

    def default_lr(self, adamw: float) -> float:
        """The learning rate to begin with; steps add up to 1 / (1 - momentum) times as much."""
        return self.times * adamw * (1 - self.momentum)

    def build(self, model: nn.Module, lr: float, factors: Factors) -> list[torch.optim.Optimizer]:
        """The optimiser of a model's parameters."""
        groups = groups_of(model, self.weight_decay, factors)
        settings = self.model_dump(include={"alpha", "eps", "momentum", "centered"})
        return [torch.optim.RMSprop(groups, lr=lr, **settings)]


class AdamLike(Descent):
    """What the Adam family has in common."""

    betas: tuple[float, float] = Field((0.9, 0.98), description="decay of the two averages")
    eps: float = Field(1e-9, gt=0, description="added to the denominator")


class Adam(AdamLike):
    """Adam (Kingma and Ba 2015); betas and eps as in Vaswani et al. (2017, 5.3)."""

    kind: Literal["adam"] = "adam"
    weight_decay: float = Field(0.0, ge=0, description=L2)

    def build(self, model: nn.Module, lr: float, factors: Factors) -> list[torch.optim.Optimizer]:
        """The optimiser of a model's parameters."""
        groups = groups_of(model, self.weight_decay, factors)
        return [torch.optim.Adam(groups, lr=lr, betas=self.betas, eps=self.eps, fused=True)]


class AdamW(AdamLike):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""

    kind: Literal["adamw"] = "adamw"
    weight_decay: float = Field(0.01, ge=0, description=DECOUPLED)

    def build(self, model: nn.Module, lr: float, factors: Factors) -> list[torch.optim.Optimizer]:
        """The optimiser of a model's parameters."""
        groups = groups_of(model, self.weight_decay, factors)
        return [torch.optim.AdamW(groups, lr=lr, betas=self.betas, eps=self.eps, fused=True)]


class Adafactor(Descent):
    """Adam with a row and a column in place of each matrix of squares, and no momentum.

    (Shazeer and Stern 2018.) Steps are relative to the size of the weights, at most 1 / sqrt(step).
    """

    times: ClassVar[float] = 10.0

    kind: Literal["adafactor"] = "adafactor"
    beta2_decay: float = Field(-0.8, le=0, description="the average's decay is 1 - step^this")
    eps: float = Field(1e-3, gt=0, description="size that weights are taken to have, at least")
    clip: float = Field(1.0, ge=1, description="largest root mean square of an update")
    weight_decay: float = Field(0.0, ge=0, description=DECOUPLED)

    def build(self, model: nn.Module, lr: float, factors: Factors) -> list[torch.optim.Optimizer]:
        """The optimiser of a model's parameters."""
        groups = groups_of(model, self.weight_decay, factors)
        eps, decay = (None, self.eps), self.beta2_decay
        return [torch.optim.Adafactor(groups, lr=lr, beta2_decay=decay, eps=eps, d=self.clip)]


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


Optimizer = Annotated[
    Auto
    | Exact
    | Sgd
    | Momentum
    | Nesterov
    | Adagrad
    | RmsProp
    | Adam
    | AdamW
    | Adafactor
    | Muon
    | BlockMuon,
    Field(discriminator="kind"),
]
