"""Decay of the probability that a decoder reads the true token, for scheduled sampling."""

import math
from typing import Annotated, Literal

from pydantic import Field

from regard.core.options import Options


class Decay(Options):
    """Base class of decays: from probability 1 at the start of a run to `final` at its end."""

    kind: str
    final: float = Field(
        0.9, ge=0, le=1, description="probability of the true token at the end of the run"
    )

    def probability(self, progress: float) -> float:
        """Return the probability of the true token. progress: finished fraction of the run."""
        return self.final + (1 - self.final) * self.remaining(progress)

    def remaining(self, progress: float) -> float:
        """Return how much of the decay is still to come, from 1 to 0."""
        raise NotImplementedError


class LinearDecay(Decay):
    """Linear decay."""

    kind: Literal["linear"] = "linear"

    def remaining(self, progress: float) -> float:
        return 1 - progress


class ExponentialDecay(Decay):
    """Exponential decay: fast at first."""

    kind: Literal["exponential"] = "exponential"
    rate: float = Field(5.0, gt=0, le=50, description="how much faster it is at the start")

    def remaining(self, progress: float) -> float:
        end = math.exp(-self.rate)
        return (math.exp(-self.rate * progress) - end) / (1 - end)


class InverseSigmoidDecay(Decay):
    """Inverse sigmoid decay: slow at first and at the end, steep in the middle."""

    kind: Literal["inverse_sigmoid"] = "inverse_sigmoid"
    rate: float = Field(10.0, gt=0, le=50, description="steepness in the middle of the run")

    def remaining(self, progress: float) -> float:
        start, now, end = (1 / (1 + math.exp(self.rate * (p - 0.5))) for p in (0, progress, 1))
        return (now - end) / (start - end)


AnyDecay = Annotated[
    LinearDecay | ExponentialDecay | InverseSigmoidDecay, Field(discriminator="kind")
]
