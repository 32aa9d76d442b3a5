"""Batch norm and PowerNorm: statistics of each feature over the real positions of a batch.

In training, a row depends on the other rows of its batch: on its micro-batch, in its process.
Evaluation uses running statistics, so that rows are independent.
Shapes: B batch size, T length, D width.
"""

from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.nn.norms.norm import Norm, NormOptions

EPS = 1e-5


def mean(x: Tensor, real: Tensor | None) -> Tensor:
    """Return the mean (D,) of x (B, T, D) over positions that are not padding."""
    if real is None:
        return x.flatten(0, -2).mean(0)
    return (x * real.unsqueeze(-1)).sum((0, 1)) / real.sum().clamp(min=1)


class BatchNorm(Norm):
    """Batch norm: (x - mean) / standard deviation of each feature (Ioffe and Szegedy 2015).

    running_mean, running_variance: moving averages, for evaluation.
    """

    needs_batch: ClassVar[bool] = True

    def __init__(self, width: int, momentum: float) -> None:
        super().__init__()
        self.momentum = momentum
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.running_mean: Tensor
        self.running_variance: Tensor
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_variance", torch.ones(width))

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        x = x.to(self.running_mean.dtype)  # also under autocast
        center, variance = self.running_mean, self.running_variance
        if self.training:
            center = mean(x, real)
            variance = mean((x - center) ** 2, real)
            self._update(center.detach(), variance.detach(), x, real)
        return (x - center) * (variance + EPS).rsqrt() * self.weight + self.bias

    @torch.no_grad()
    def _update(self, center: Tensor, variance: Tensor, x: Tensor, real: Tensor | None) -> None:
        """Update the moving averages, with the unbiased variance, as torch does."""
        count = x[..., 0].numel() if real is None else real.sum()
        unbiased = variance * count / max(int(count) - 1, 1)
        self.running_mean.lerp_(center, self.momentum)
        self.running_variance.lerp_(unbiased, self.momentum)


class PowerNorm(Norm):
    """PowerNorm: x / running root mean square of each feature (Shen et al. 2020, algorithm 2).

    No mean is subtracted. In training, x is divided by the quadratic mean of earlier batches, or
    of its own batch if it is the first. The backward pass is approximate (`PowerFunction`).
    power: moving average of x^2. pull: the moving average of the backward pass. batches: number of
    batches so far.
    """

    needs_batch: ClassVar[bool] = True

    def __init__(self, width: int, decay: float) -> None:
        super().__init__()
        self.decay, self.momentum = decay, 1 - decay
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.power: Tensor
        self.pull: Tensor
        self.batches: Tensor
        self.register_buffer("power", torch.ones(width))
        self.register_buffer("pull", torch.zeros(width))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        x = x.to(self.power.dtype)  # also under autocast
        if not self.training:
            return x * (self.power + EPS).rsqrt() * self.weight + self.bias
        square = mean(x.detach() ** 2, real)
        first = int(self.batches) == 0
        root = ((square if first else self.power) + EPS).sqrt()
        with torch.no_grad():
            self.power.lerp_(square, 1.0 if first else self.momentum)
            self.batches += 1
        normal: Tensor = PowerFunction.apply(x, root, real, self.pull, self.decay)
        return normal * self.weight + self.bias


class PowerFunction(torch.autograd.Function):
    """x / root, with the approximate backward pass of PowerNorm, which updates `pull`.

    With y = x / root and the gradient g of y: the gradient of x is (g - pull y) / root, and pull
    moves by (1 - decay) times the mean of (g - pull y) y over real positions.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, root: Tensor, real: Tensor | None, pull: Tensor, decay: float
    ) -> Tensor:
        y = x / root
        ctx.save_for_backward(y, root, real)
        ctx.pull, ctx.decay = pull, decay
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        y, root, real = ctx.saved_tensors
        if real is not None:
            y = y * real.unsqueeze(-1)  # padding gets no gradient from `pull`
        g = gradients[0] - ctx.pull * y
        ctx.pull += (1 - ctx.decay) * mean(g * y, real)
        return g / root, None, None, None, None


class Batch(NormOptions):
    """Batch norm over the real positions of a batch: for comparison with layer norm."""

    kind: Literal["batch"] = "batch"
    momentum: float = Field(0.1, gt=0, le=1, description="weight of a batch in running statistics")

    def build(self, width: int) -> Norm:
        return BatchNorm(width, self.momentum)


class Power(NormOptions):
    """PowerNorm: running quadratic means in place of batch statistics."""

    kind: Literal["power"] = "power"
    decay: float = Field(0.9, gt=0, lt=1, description="decay of running statistics per batch")

    def build(self, width: int) -> Norm:
        return PowerNorm(width, self.decay)
