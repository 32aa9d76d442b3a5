"""A fast engine whose places come to an end, and another one for what is too long for it."""

from collections.abc import Iterable
from typing import Any

from regard.inference.engine import BatchWork, Engine, Result
from regard.search.search import Search, SearchRequest, SearchResult


class Fitting(Engine):
    """`engine` where it has places enough for the sources and for outputs, else `other`."""

    def __init__(self, engine: Engine, other: Engine) -> None:
        self.engine, self.other = engine, other
        self.name, self.device, self.forks = engine.name, engine.device, engine.forks

    def _fitting(self, request: SearchRequest) -> Engine:
        source, limits = request.sequences()
        sides = (
            (source.data.shape[1], self.engine.source_places, self.other.source_places),
            (int(limits.max()), self.engine.target_places, self.other.target_places),
        )
        enough = all(
            own is None or length <= own or (others is not None and others <= own)
            for length, own, others in sides
        )
        return self.engine if enough else self.other

    def run(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        return self._fitting(request).run(search, request)

    def stepper(self) -> Any:
        return self.other.stepper()

    def for_alignment(self, request: SearchRequest) -> Any:
        return self._fitting(request).stepper()

    def spread(self, work: BatchWork[Result], parts: list[list[int]]) -> Iterable[Result]:
        return self.engine.spread(lambda _, part: work(self, part), parts)
