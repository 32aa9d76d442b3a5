"""Learning-rate schedules: a factor from 0 to 1 along the run.

`share` is how much of the run is over, 0 to 1: of its steps, its epochs or, with a budget, of
its time. So a run that is given ten minutes is fully annealed after ten minutes.
"""

import math
from typing import Annotated, Literal

from pydantic import Field

from regard.options import Options


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

    def left(self, share: float) -> float:
        """What is left of the run after the warm-up, from 1 to 0."""
        start = self.warmup if self.warmup < 1 else 0.0
        return (1 - share) / (1 - start)


class Constant(Warmed):
    """Stays at the top."""

    kind: Literal["constant"] = "constant"

    def after(self, share: float, step: int) -> float:
        return 1.0


class InverseRoot(Warmed):
    """Falls with one over the square root of the step (Vaswani et al. 2017, 5.3)."""

    kind: Literal["inverse_root"] = "inverse_root"

    def after(self, share: float, step: int) -> float:
        if self.warmup >= 1:
            return math.sqrt(self.warmup / (step + 1))
        return math.sqrt(max(self.warmup, 1e-3) / max(share, self.warmup, 1e-3))


class Linear(Warmed):
    """Falls in a straight line to zero at the end of the run."""

    kind: Literal["linear"] = "linear"

    def after(self, share: float, step: int) -> float:
        return self.left(share)


class Cosine(Warmed):
    """Falls along half a cosine to zero at the end of the run (Loshchilov and Hutter 2017)."""

    kind: Literal["cosine"] = "cosine"

    def after(self, share: float, step: int) -> float:
        return 0.5 * (1 - math.cos(math.pi * self.left(share)))


Schedule = Annotated[Constant | InverseRoot | Linear | Cosine, Field(discriminator="kind")]
