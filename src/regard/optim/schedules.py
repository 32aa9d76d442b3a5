"""Learning-rate schedules: a factor from 0 to 1 over the run.

`progress` is the finished fraction of the run, in steps, epochs or, with a budget, time. So a run
with a budget of ten minutes is fully annealed after ten minutes.
"""

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting, Options

MAX_WARMUP = 0.3  # fraction of a run
Fraction = Annotated[float, Field(gt=0, lt=1)]


class WithWarmup(Options):
    """A schedule with linear warmup from 0 to 1."""

    warmup: float | None = Field(
        None, ge=0, description="warmup length: below 1 a fraction of the run, otherwise steps"
    )

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        """Yield the warmup: a number of updates, but at most a fraction of the run."""
        training = config.training
        if not (config.model.is_sized and training.optimizer.stepwise and training.lr):
            return
        if any(training.basics(stats, config)):  # the number of updates is not known yet
            return
        wanted = config.model.default_warmup(training.lr)
        updates = training.expected_updates(stats, config.model)
        length = MAX_WARMUP if wanted >= max(1.0, MAX_WARMUP * updates) else wanted
        reason = stats.reason
        if stats.budget:
            reason = f"about {float(f'{updates:.1g}'):,.0f} updates expected"
        yield from self.auto_settings(reason, warmup=length)

    @property
    def length(self) -> float:
        """Return the warmup length; a default if it is unset."""
        return 0.05 if self.warmup is None else self.warmup

    def factor(self, progress: float, step: int) -> float:
        """Return the factor of update `step` (from 0) at this progress."""
        done = (step + 1) / self.length if self.length >= 1 else math.inf
        if 0 < self.length < 1:
            done = max(progress, 1e-3) / self.length
        return min(1.0, done) if done < 1 else self.factor_after_warmup(min(1.0, progress), step)

    def factor_after_warmup(self, progress: float, step: int) -> float:
        """Return the factor after the warmup."""
        raise NotImplementedError

    def remaining(self, progress: float, step: int) -> float:
        """Return the remaining fraction of the run after the warmup, from 1 to 0."""
        start = self.length
        if start >= 1:  # warmup in steps: compute its fraction of the run
            start = progress * (self.length - 1) / max(step, self.length - 1, 1)
        return (1 - progress) / (1 - start) if start < 1 else 0.0


class WithCooldown(WithWarmup):
    """A schedule with an optional linear cooldown to 0."""

    cooldown: float = Field(
        0.0, ge=0, lt=1, description="last fraction of the run, with linear decay to 0"
    )

    def factor(self, progress: float, step: int) -> float:
        """Return the factor of update `step` (from 0) at this progress."""
        return super().factor(progress, step) * _cooldown(progress, self.cooldown)


class WithFinalFactor(WithWarmup):
    """A schedule that reaches its final factor at the end of the run."""

    final_factor: float = Field(
        0.0, ge=0, le=1, description="final learning rate as a fraction of the peak"
    )


class Constant(WithCooldown):
    """Constant learning rate."""

    kind: Literal["constant"] = "constant"

    def factor_after_warmup(self, progress: float, step: int) -> float:
        return 1.0


class StepDecay(WithCooldown):
    """Step decay at milestones (He et al. 2016, 4.2: to a tenth at 1/2 and at 3/4)."""

    kind: Literal["step"] = "step"
    milestones: tuple[Fraction, ...] = Field(
        (0.5, 0.75), description="when to decay, as fractions of the run"
    )
    gamma: float = Field(0.1, gt=0, lt=1, description="decay factor")

    @field_validator("milestones")
    @classmethod
    def _in_order(cls, milestones: tuple[float, ...]) -> tuple[float, ...]:
        if list(milestones) != sorted(set(milestones)):
            raise ValueError("expected increasing fractions, e.g. [0.5, 0.75]")
        return milestones

    def factor_after_warmup(self, progress: float, step: int) -> float:
        return self.gamma ** sum(progress >= milestone for milestone in self.milestones)


class Exponential(WithCooldown):
    """Exponential decay (as Senior et al. 2013)."""

    kind: Literal["exponential"] = "exponential"
    final_factor: float = Field(
        0.01, gt=0, le=1, description="final learning rate as a fraction of the peak"
    )

    def factor_after_warmup(self, progress: float, step: int) -> float:
        return self.final_factor ** (1 - self.remaining(progress, step))


class InverseRoot(WithCooldown):
    """Inverse square root decay (Vaswani et al. 2017, 5.3)."""

    kind: Literal["inverse_root"] = "inverse_root"

    def factor_after_warmup(self, progress: float, step: int) -> float:
        if self.length >= 1:
            return math.sqrt(self.length / (step + 1))
        return math.sqrt(max(self.length, 1e-3) / max(progress, self.length, 1e-3))


class LinearSchedule(WithFinalFactor):
    """Linear decay to the final factor."""

    kind: Literal["linear"] = "linear"

    def factor_after_warmup(self, progress: float, step: int) -> float:
        return self.final_factor + (1 - self.final_factor) * self.remaining(progress, step)


class Cosine(WithFinalFactor):
    """Cosine decay to the final factor (Loshchilov and Hutter 2017)."""

    kind: Literal["cosine"] = "cosine"

    def factor_after_warmup(self, progress: float, step: int) -> float:
        height = 0.5 * (1 - math.cos(math.pi * self.remaining(progress, step)))
        return self.final_factor + (1 - self.final_factor) * height


class WarmupStableDecay(WithFinalFactor):
    """Warmup-stable-decay (Hu et al. 2024; Hägele et al. 2024)."""

    kind: Literal["wsd"] = "wsd"
    decay_fraction: float = Field(
        0.2, gt=0, le=1, description="last fraction of the run, in which the learning rate decays"
    )
    shape: Literal["linear", "root"] = Field(
        "linear", description="decay shape: linear, or 1 - sqrt"
    )

    def factor(self, progress: float, step: int) -> float:
        """Return the factor of update `step` (from 0) at this progress."""
        height = _cooldown(progress, self.decay_fraction)
        if self.shape == "root":
            height = 1 - math.sqrt(1 - height)
        return super().factor(progress, step) * (
            self.final_factor + (1 - self.final_factor) * height
        )

    def factor_after_warmup(self, progress: float, step: int) -> float:
        return 1.0


def _cooldown(progress: float, last: float) -> float:
    """Return 1 until the last fraction `last` of the run, then decay linearly to 0."""
    return max(0.0, min(1.0, (1 - progress) / last)) if last else 1.0


Schedule = Annotated[
    Constant | StepDecay | Exponential | InverseRoot | LinearSchedule | Cosine | WarmupStableDecay,
    Field(discriminator="kind"),
]
