"""A fast engine whose places come to an end, and another one for what is too long for it."""

from collections.abc import Callable, Iterable, Sequence

from torch import Tensor

from regard.data.tensors.padded import Padded
from regard.inference.engine import Engine, Result
from regard.search import Beam, Hypothesis, Sample, TokenConstraints
from regard.search.force import Stepper


class Fitting(Engine):
    """`engine` where it has places enough for the sources and for answers to them, else `other`."""

    def __init__(self, engine: Engine, other: Engine) -> None:
        self.engine, self.other = engine, other
        self.name, self.device, self.forks = engine.name, engine.device, engine.forks

    def check(self, length: int) -> None:
        self.other.check(length)

    def fitting(self, source: int, target: int) -> Engine:
        sides = (
            (source, self.engine.source_places, self.other.source_places),
            (target, self.engine.target_places, self.other.target_places),
        )
        enough = all(
            own is None or length <= own or (others is not None and others <= own)
            for length, own, others in sides
        )
        return self.engine if enough else self.other

    def search(
        self,
        options: Beam | Sample,
        source: Padded,
        limits: Tensor,
        nbest: int = 1,
        wishes: Sequence[TokenConstraints] | None = None,
    ) -> list[list[Hypothesis]]:
        own = self.fitting(source.data.shape[1], int(limits.max()))
        there = Padded(source.data.to(own.device), source.mask.to(own.device))
        return own.search(options, there, limits.to(own.device), nbest, wishes)

    def stepper(self) -> Stepper:
        return self.other.stepper()

    def spread(
        self, work: Callable[[list[int]], Result], parts: list[list[int]]
    ) -> Iterable[Result]:
        return self.engine.spread(work, parts)
