"""Optimizers: torch's own, with groups that leave norms, biases and embeddings undecayed.

`build` gives a list: mostly of one, of two where matrices and the rest are treated differently.
Each group of weights has a `factor`, its share of the learning rate; the loop sets the rate of a
group to the schedule's times that.
"""

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field, model_validator
from torch import nn

from regard.optim.descent import DECOUPLED, L2, Adam, AdamW, Descent
from regard.optim.groups import Factors, Group, divided, on_cpu
from regard.optim.muon import Muon


class AutoOptimizer(Descent):
    """Chosen from model and objective: a formula where there is one, else adamw."""

    is_auto: ClassVar[bool] = True
    kind: Literal["auto"] = "auto"


class ClosedForm(Descent):
    """No optimizer: the best weights by a formula, in one step."""

    divisible: ClassVar[bool] = False
    stepwise: ClassVar[bool] = False

    kind: Literal["closed_form"] = "closed_form"

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

    def optimizer(self, groups: list[Group], lr: float, model: nn.Module) -> torch.optim.Optimizer:
        # the fused kernel fails where a weight has its first gradient later than others, and
        # with parts of weights
        fused = not self.momentum and not divided(model)
        fast = {"fused": True} if fused else {"foreach": True}
        momentum, nesterov = self.momentum, self.nesterov
        return torch.optim.SGD(groups, lr=lr, momentum=momentum, nesterov=nesterov, **fast)


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

    def optimizer(self, groups: list[Group], lr: float, model: nn.Module) -> torch.optim.Optimizer:
        fused = on_cpu(model) and not divided(model)
        return torch.optim.Adagrad(groups, lr=lr, eps=self.eps, fused=fused or None)


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

    def optimizer(self, groups: list[Group], lr: float, model: nn.Module) -> torch.optim.Optimizer:
        settings = self.model_dump(include={"alpha", "eps", "momentum", "centered"})
        return torch.optim.RMSprop(groups, lr=lr, **settings)


class Adafactor(Descent):
    """Adam with a row and a column in place of each matrix of squares, and no momentum.

    (Shazeer and Stern 2018.) Steps are relative to the size of the weights, at most 1 / sqrt(step).
    """

    times: ClassVar[float] = 10.0
    divisible: ClassVar[bool] = False

    kind: Literal["adafactor"] = "adafactor"
    beta2_decay: float = Field(-0.8, le=0, description="the average's decay is 1 - step^this")
    eps: float = Field(1e-3, gt=0, description="size that weights are taken to have, at least")
    clip_threshold: float = Field(1.0, ge=1, description="largest root mean square of an update")
    weight_decay: float = Field(0.0, ge=0, description=DECOUPLED)

    def optimizer(self, groups: list[Group], lr: float, model: nn.Module) -> torch.optim.Optimizer:
        eps, decay = (None, self.eps), self.beta2_decay
        return torch.optim.Adafactor(
            groups, lr=lr, beta2_decay=decay, eps=eps, d=self.clip_threshold
        )


Optimizer = Annotated[
    AutoOptimizer
    | ClosedForm
    | Sgd
    | Momentum
    | Nesterov
    | Adagrad
    | RmsProp
    | Adam
    | AdamW
    | Adafactor
    | Muon,
    Field(discriminator="kind"),
]
