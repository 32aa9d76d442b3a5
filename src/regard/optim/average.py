"""Averages of the weights over training, which often score better than the last weights."""

from collections import deque
from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from regard.core.options import Options

Weights = Sequence[Tensor]  # the trainable weights of a model, in order


class Average:
    """Base class of weight averages. It keeps nothing and averages nothing."""

    def step(self, weights: Weights) -> None:
        """Record the weights after an update."""

    def validate(self, weights: Weights) -> None:
        """Record the weights before a validation."""

    def values(self) -> Weights | None:
        """Return the averaged weights, or None to use the weights themselves."""
        return None

    def saved(self) -> list[Weights]:
        """Return the state to save in a checkpoint."""
        return []

    def restore(self, saved: list[Weights]) -> None:
        """Restore the state that `saved` returned."""


class ExponentialAverage(Average):
    """An exponential average: average += (1 - decay) (weights - average) after each update."""

    def __init__(self, decay: float) -> None:
        self.decay = decay
        self.average: Weights = []
        self.updates = 0

    @torch.no_grad()
    def step(self, weights: Weights) -> None:
        if not self.average:
            self.average = [weight.detach().clone() for weight in weights]
        self.updates += 1
        # As in TensorFlow, the decay is smaller at first, to forget the initial weights.
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        torch._foreach_lerp_(list(self.average), list(weights), 1 - decay)

    def values(self) -> Weights | None:
        return self.average or None

    def saved(self) -> list[Weights]:
        count = [torch.tensor(self.updates)]
        return [self.average, count] if self.average else []

    def restore(self, saved: list[Weights]) -> None:
        if saved:
            self.average, self.updates = saved[0], int(saved[1][0])


class WindowAverage(Average):
    """The mean of the weights at the last few validations."""

    def __init__(self, count: int) -> None:
        self.window: deque[Weights] = deque(maxlen=count)

    @torch.no_grad()
    def validate(self, weights: Weights) -> None:
        self.window.append([weight.detach().clone() for weight in weights])

    @torch.no_grad()
    def values(self) -> Weights | None:
        if len(self.window) < 2:
            return None
        return [sum(each[1:], each[0]) / len(each) for each in zip(*self.window, strict=True)]

    def saved(self) -> list[Weights]:
        return list(self.window)

    def restore(self, saved: list[Weights]) -> None:
        self.window.extend(saved)


class NoAverage(Options):
    """No averaging."""

    kind: Literal["none"] = "none"

    def build(self) -> Average:
        return Average()


class Ema(Options):
    """Exponential moving average of the weights (Polyak and Juditsky 1992)."""

    kind: Literal["ema"] = "ema"
    decay: float = Field(0.999, gt=0, lt=1, description="decay of the average per update")

    def build(self) -> Average:
        return ExponentialAverage(self.decay)


class Checkpoints(Options):
    """The mean of the weights at the last validations (Vaswani et al. 2017, 6.1)."""

    kind: Literal["checkpoints"] = "checkpoints"
    count: int = Field(5, ge=2, description="validations whose weights are averaged")

    def build(self) -> Average:
        return WindowAverage(self.count)


Averaging = Annotated[NoAverage | Ema | Checkpoints, Field(discriminator="kind")]
