"""The optimizers of torch, without weight decay for norms, biases and embeddings.

`build` returns a list: usually one optimizer, or two if hidden matrices have their own optimizer.
Each parameter group has a `factor`, by which training multiplies the scheduled learning rate.
"""

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field, model_validator
from torch import nn

from regard.optim.descent import DECOUPLED, L2, Adam, AdamW, Descent
from regard.optim.groups import Factors, Group, is_on_cpu, is_sharded
from regard.optim.muon import Muon


class AutoOptimizer(Descent):
    """Automatic choice: closed_form if available, adam for convex models, otherwise adamw."""

    is_auto: ClassVar[bool] = True
    kind: Literal["auto"] = "auto"


class ClosedForm(Descent):
    """No optimizer: the closed-form solution, in one step."""

    divisible: ClassVar[bool] = False
    stepwise: ClassVar[bool] = False

    kind: Literal["closed_form"] = "closed_form"

    def build(self, model: nn.Module, lr: float, factors: Factors) -> list[torch.optim.Optimizer]:
        """Return no optimizer."""
        return []


class Sgd(Descent):
    """Stochastic gradient descent (Robbins and Monro 1951), plain or with momentum."""

    lr_factor: ClassVar[float] = 500.0

    kind: Literal["sgd"] = "sgd"
    momentum: float = Field(0.0, ge=0, lt=1, description="momentum coefficient")
    nesterov: bool = Field(False, description="use Nesterov momentum")
    weight_decay: float = Field(0.0, ge=0, description=L2)

    @model_validator(mode="after")
    def _nesterov_needs_momentum(self) -> "Sgd":
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov requires momentum > 0, e.g. momentum=0.9")
        return self

    def default_lr(self, adamw: float) -> float:
        """Return the default learning rate, times 1 - momentum, as momentum lengthens steps."""
        return self.lr_factor * adamw * (1 - self.momentum)

    def optimizer(self, groups: list[Group], lr: float, model: nn.Module) -> torch.optim.Optimizer:
        # The fused kernel fails for sharded weights, and if a weight gets its first gradient
        # later than others.
        fused = not self.momentum and not is_sharded(model)
        fast = {"fused": True} if fused else {"foreach": True}
        momentum, nesterov = self.momentum, self.nesterov
        return torch.optim.SGD(groups, lr=lr, momentum=momentum, nesterov=nesterov, **fast)


class Momentum(Sgd):
    """SGD with momentum, the heavy ball (Polyak 1964)."""

    kind: Literal["momentum"] = "momentum"  # type: ignore[assignment]
    momentum: float = Field(0.9, gt=0, lt=1, description="momentum coefficient")


class Nesterov(Momentum):
    """SGD with Nesterov momentum (Nesterov 1983; Sutskever et al. 2013)."""

    kind: Literal["nesterov"] = "nesterov"  # type: ignore[assignment]
    nesterov: Literal[True] = Field(True, description="Nesterov momentum; always true")


class Adagrad(Descent):
    """Per-weight learning rates from accumulated squared gradients (Duchi et al. 2011)."""

    lr_factor: ClassVar[float] = 10.0

    kind: Literal["adagrad"] = "adagrad"
    eps: float = Field(1e-10, gt=0, description="added to the denominator")
    weight_decay: float = Field(0.0, ge=0, description=L2)

    def optimizer(self, groups: list[Group], lr: float, model: nn.Module) -> torch.optim.Optimizer:
        fused = is_on_cpu(model) and not is_sharded(model)
        return torch.optim.Adagrad(groups, lr=lr, eps=self.eps, fused=fused or None)


class RmsProp(Descent):
    """Per-weight learning rates from an average of squared gradients (Tieleman, Hinton 2012)."""

    kind: Literal["rmsprop"] = "rmsprop"
    alpha: float = Field(0.9, ge=0, lt=1, description="decay of the average of squared gradients")
    eps: float = Field(1e-8, gt=0, description="added to the denominator")
    momentum: float = Field(0.0, ge=0, lt=1, description="momentum coefficient")
    centered: bool = Field(False, description="normalize by the variance (Graves 2013)")
    weight_decay: float = Field(0.0, ge=0, description=L2)

    def default_lr(self, adamw: float) -> float:
        """Return the default learning rate, times 1 - momentum, as momentum lengthens steps."""
        return self.lr_factor * adamw * (1 - self.momentum)

    def optimizer(self, groups: list[Group], lr: float, model: nn.Module) -> torch.optim.Optimizer:
        settings = self.model_dump(include={"alpha", "eps", "momentum", "centered"})
        return torch.optim.RMSprop(groups, lr=lr, **settings)


class Adafactor(Descent):
    """Adam with factored second moments and no momentum (Shazeer and Stern 2018).

    Updates are relative to the root mean square of the weights, with a learning rate of at most
    1 / sqrt(step).
    """

    lr_factor: ClassVar[float] = 10.0
    divisible: ClassVar[bool] = False

    kind: Literal["adafactor"] = "adafactor"
    beta2_decay: float = Field(
        -0.8, le=0, description="decay of the second moment: 1 - step^beta2_decay"
    )
    eps: float = Field(
        1e-3, gt=0, description="lower bound of the RMS of the weights, which scales the updates"
    )
    clip_threshold: float = Field(1.0, ge=1, description="maximum root mean square of an update")
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
