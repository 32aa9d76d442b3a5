"""A fast engine with a fallback to another engine for what it does not support."""

from collections.abc import Iterable
from typing import Any

from regard.core.errors import info
from regard.inference.engine import BatchWork, Engine, Result
from regard.nn.ablation import is_ablating
from regard.nn.capture_hooks import is_recording
from regard.search.search import Search, SearchRequest, SearchResult


class FallbackEngine(Engine):
    """An engine that runs `engine`, or `fallback` for what `engine` does not support.

    This is: captured or ablated predictions, the searches that `engine.unsupported` names, and long
    requests, unless the length limit of `fallback` is no larger. Each reason is printed once.
    """

    def __init__(self, engine: Engine, fallback: Engine) -> None:
        self.engine, self.fallback = engine, fallback
        self.name, self.device, self.fork_safe = engine.name, engine.device, engine.fork_safe
        self.takes_rows = engine.takes_rows
        self._printed: set[str] = set()

    def _select(self, search: Search | None, request: SearchRequest) -> Engine:
        """Return the engine for a request. search: None if only its length matters."""
        source, limits = request.sequences()
        reason = None
        if self._is_too_long(source.data.shape[1], int(limits.max())):
            reason = "long texts"
        elif search is not None:
            is_captured = is_recording() or is_ablating()
            reason = "capture" if is_captured else self.engine.unsupported(search, request)
        if reason is None:
            return self.engine
        if reason not in self._printed:
            self._printed.add(reason)
            info(f"engine {self.fallback.name} runs what {self.name} does not support: {reason}")
        return self.fallback

    def _is_too_long(self, source: int, target: int) -> bool:
        """Return whether a source or a limit of this length is too long only for `engine`."""
        engine, fallback = self.engine, self.fallback
        sides = (
            (source, engine.max_source_length, fallback.max_source_length),
            (target, engine.max_target_length, fallback.max_target_length),
        )
        return any(
            maximum is not None and length > maximum and (other is None or other > maximum)
            for length, maximum, other in sides
        )

    def run(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        return self._select(search, request).run(search, request)

    def run_rows(
        self, search: Search, rows: list[list[int]], limits: list[int], nbest: int
    ) -> list[SearchResult | None]:
        longest = (max(map(len, rows)), max(limits))
        if is_recording() or is_ablating() or self._is_too_long(*longest):
            return [None] * len(rows)
        return self.engine.run_rows(search, rows, limits, nbest)

    def run_rest(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        self._select(search, request)  # prints the reason, if there is one
        return self.fallback.run(search, request)

    def stepper(self) -> Any:
        return self.fallback.stepper()

    def for_alignment(self, request: SearchRequest) -> Any:
        return self._select(None, request).stepper()

    def map_batches(self, work: BatchWork[Result], parts: list[list[int]]) -> Iterable[Result]:
        return self.engine.map_batches(lambda _, part: work(self, part), parts)
