"""Learning-rate schedules: a factor from 0 to 1 along the run.

`share` is how much of the run is over, 0 to 1: of its steps, its epochs or, with a budget, of
its time. So a run that is given ten minutes is fully annealed after ten minutes.
"""

import math
from typing import Annotated, Literal

from pydantic import Field, field_validator

from regard.core.options import Options

Share = Annotated[float, Field(gt=0, lt=1)]


class Warmed(Options):
    """A schedule whose factor first rises linearly from 0 to 1."""

    warmup: float = Field(
        0.05, ge=0, description="below 1: a share of the run; otherwise a number of steps"
    )

    def factor(self, share: float, step: int) -> float:
        """The factor of update number `step` (from 0), at this share of the run."""
        done = (step + 1) / self.warmup if self.warmup >= 1 else math.inf
        if 0 < self.warmup < 1:
            done = max(share, 1e-3) / self.warmup
        return min(1.0, done) if done < 1 else self.after(min(1.0, share), step)

    def after(self, share: float, step: int) -> float:
        """The factor after the warm-up."""
        raise NotImplementedError

    def left(self, share: float, step: int) -> float:
        """What is left of the run after the warm-up, from 1 to 0."""
        start = self.warmup
        if start >= 1:  # the share of the run that so many steps took
            start = share * (self.warmup - 1) / max(step, self.warmup - 1, 1)
        return (1 - share) / (1 - start) if start < 1 else 0.0


class Cooled(Warmed):
    """A schedule that does not end at 0 by itself."""

    cooldown: float = Field(
        0.0, ge=0, lt=1, description="share of the run, at its end, that falls in a line to 0"
    )

    def factor(self, share: float, step: int) -> float:
        """The factor of update number `step` (from 0), at this share of the run."""
        return super().factor(share, step) * _falling(share, self.cooldown)


class Ending(Warmed):
    """A schedule that reaches its last value at the end of the run."""

    final_factor: float = Field(0.0, ge=0, le=1, description="share of the highest rate at the end")


class Constant(Cooled):
    """Stays at the top."""

    kind: Literal["constant"] = "constant"

    def after(self, share: float, step: int) -> float:
        return 1.0


class StepDecay(Cooled):
    """Falls at once, several times (He et al. 2016, 4.2: to a tenth at 1/2 and at 3/4)."""

    kind: Literal["step"] = "step"
    milestones: tuple[Share, ...] = Field(
        (0.5, 0.75), description="shares of the run when it falls"
    )
    gamma: float = Field(0.1, gt=0, lt=1, description="what it is multiplied by then")

    @field_validator("milestones")
    @classmethod
    def _in_order(cls, milestones: tuple[float, ...]) -> tuple[float, ...]:
        if list(milestones) != sorted(set(milestones)):
            raise ValueError("each later than the one before expected, as in [0.5, 0.75]")
        return milestones

    def after(self, share: float, step: int) -> float:
        return self.gamma ** sum(share >= milestone for milestone in self.milestones)


class Exponential(Cooled):
    """Falls by the same ratio in the same time (as Senior et al. 2013)."""

    kind: Literal["exponential"] = "exponential"
    final_factor: float = Field(
        0.01, gt=0, le=1, description="share of the highest rate at the end"
    )

    def after(self, share: float, step: int) -> float:
        return self.final_factor ** (1 - self.left(share, step))


class InverseRoot(Cooled):
    """Falls with one over the square root of the step (Vaswani et al. 2017, 5.3)."""

    kind: Literal["inverse_root"] = "inverse_root"

    def after(self, share: float, step: int) -> float:
        if self.warmup >= 1:
            return math.sqrt(self.warmup / (step + 1))
        return math.sqrt(max(self.warmup, 1e-3) / max(share, self.warmup, 1e-3))


class LinearSchedule(Ending):
    """Falls in a straight line to its end."""

    kind: Literal["linear"] = "linear"

    def after(self, share: float, step: int) -> float:
        return self.final_factor + (1 - self.final_factor) * self.left(share, step)


class Cosine(Ending):
    """Falls along half a cosine to its end (Loshchilov and Hutter 2017)."""

    kind: Literal["cosine"] = "cosine"

    def after(self, share: float, step: int) -> float:
        fallen = 0.5 * (1 - math.cos(math.pi * self.left(share, step)))
        return self.final_factor + (1 - self.final_factor) * fallen


class WarmupStableDecay(Ending):
    """Stays at the top, then falls soon before the end (Hu et al. 2024; Hägele et al. 2024)."""

    kind: Literal["wsd"] = "wsd"
    decay_fraction: float = Field(
        0.2, gt=0, le=1, description="share of the run, at its end, that falls"
    )
    shape: Literal["linear", "root"] = Field(
        "linear", description="in a line, or as 1 - sqrt: soon at first, slowly at the end"
    )

    def factor(self, share: float, step: int) -> float:
        """The factor of update number `step` (from 0), at this share of the run."""
        fallen = _falling(share, self.decay_fraction)
        if self.shape == "root":
            fallen = 1 - math.sqrt(1 - fallen)
        return super().factor(share, step) * (self.final_factor + (1 - self.final_factor) * fallen)

    def after(self, share: float, step: int) -> float:
        return 1.0


def _falling(share: float, last: float) -> float:
    """1, and over the last share of the run in a line to 0."""
    return max(0.0, min(1.0, (1 - share) / last)) if last else 1.0


Schedule = Annotated[
    Constant | StepDecay | Exponential | InverseRoot | LinearSchedule | Cosine | WarmupStableDecay,
    Field(discriminator="kind"),
]
