"""A fast engine with a fallback to another engine for long sequences."""

from collections.abc import Iterable
from typing import Any

from regard.inference.engine import BatchWork, Engine, Result
from regard.search.search import Search, SearchRequest, SearchResult


class FallbackEngine(Engine):
    """An engine that runs `engine`, or `fallback` for requests that are too long for `engine`.

    If the length limit of `fallback` is no larger, `engine` runs all requests.
    """

    def __init__(self, engine: Engine, fallback: Engine) -> None:
        self.engine, self.fallback = engine, fallback
        self.name, self.device, self.fork_safe = engine.name, engine.device, engine.fork_safe

    def _select(self, request: SearchRequest) -> Engine:
        source, limits = request.sequences()
        engine, fallback = self.engine, self.fallback
        sides = (
            (source.data.shape[1], engine.max_source_length, fallback.max_source_length),
            (int(limits.max()), engine.max_target_length, fallback.max_target_length),
        )
        fits = all(
            maximum is None or length <= maximum or (other is not None and other <= maximum)
            for length, maximum, other in sides
        )
        return engine if fits else fallback

    def run(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        return self._select(request).run(search, request)

    def stepper(self) -> Any:
        return self.fallback.stepper()

    def for_alignment(self, request: SearchRequest) -> Any:
        return self._select(request).stepper()

    def map_batches(self, work: BatchWork[Result], parts: list[list[int]]) -> Iterable[Result]:
        return self.engine.map_batches(lambda _, part: work(self, part), parts)
