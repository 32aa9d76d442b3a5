"""The engine auto: whichever is the fastest on the texts at hand, by measuring."""

import random
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from regard.core.errors import UserError, info
from regard.inference.engine import BatchWork, Engine, Result
from regard.inference.fallback_engine import Fitting
from regard.search.search import Search, SearchRequest, SearchResult


class EngineChoice(NamedTuple):
    """An engine by its name, and how its weights are rounded."""

    name: str
    quantize: str | None = None

    def __str__(self) -> str:
        return f"{self.name} {self.quantize or ''}".strip()


NOT_YET, TORCH = EngineChoice(""), EngineChoice("torch")
OTHERS = (
    EngineChoice("torch", "int8"),
    EngineChoice("ctranslate2"),
    EngineChoice("ctranslate2", "int8"),
    EngineChoice("onnx"),
)
ENOUGH = 200  # sources; fewer are answered before all engines were measured
SECOND = 1.0  # for each engine, about
FEW = 8  # sources to begin with
ALIKE = 0.95  # share of best answers that must be those of torch


class AutoEngine(Engine):
    """torch, until there are enough sources to measure others; then the fastest."""

    name = "auto"

    def __init__(self, engine: Engine, load: Callable[[EngineChoice], Engine]) -> None:
        """engine: that of torch. load: opens another one."""
        self.engine, self.device, self.load = engine, engine.device, load
        self.torch, self.chosen = engine, NOT_YET

    def run(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        return self.engine.run(search, request)

    def stepper(self) -> Any:
        return self.engine.stepper()

    def for_alignment(self, request: SearchRequest) -> Any:
        return self.engine.for_alignment(request)

    def spread(self, work: BatchWork[Result], parts: list[list[int]]) -> Iterable[Result]:
        """By the fastest engine for these sources, if there are enough; it stays that one."""
        if self.chosen == NOT_YET and sum(map(len, parts)) >= ENOUGH:
            self._use(*self._fastest(Trial(parts, work)))
        return self.engine.spread(work, parts)

    def taken(self) -> list[str | None] | None:
        return None if self.chosen == NOT_YET else [self.chosen.name, self.chosen.quantize]

    def take(self, record: list[str | None] | None) -> None:
        if record is None:
            return
        name, quantize = record
        choice = EngineChoice(str(name), quantize)
        info(f"engine auto: {choice} again, as before")
        self._use(self.torch if choice == TORCH else self._open(choice), choice)

    def _use(self, engine: Engine, choice: EngineChoice) -> None:
        self.engine, self.device, self.chosen = engine, engine.device, choice

    def _open(self, choice: EngineChoice) -> Engine:
        """The engine, which leaves what is too long for it to that of torch."""
        return Fitting(self.load(choice), self.torch)

    def _fastest(self, trial: "Trial") -> tuple[Engine, EngineChoice]:
        """The fastest engine whose predictions are those of torch; says why."""
        trial.run(self.torch)  # what is done once only is done now
        trial.grow(self.torch)
        expected, best = trial.run(self.torch)
        engine, chosen, measured = self.torch, TORCH, [f"torch {best:.3g}"]
        for choice in OTHERS:
            try:
                candidate = self._open(choice)
            except UserError as error:
                info(f"engine auto: without {choice}: {error}")
                continue
            trial.run(candidate)
            answers, rate = trial.run(candidate)
            same = sum(a.tokens == b.tokens for a, b in zip(answers, expected, strict=True))
            alike = same / len(expected)
            doubt = "" if alike >= ALIKE else f" ({alike:.0%} alike)"
            measured.append(f"{choice} {rate:.3g}{doubt}")
            if alike >= ALIKE and rate > best:
                engine, best, chosen = candidate, rate, choice
        count = len(expected)
        info(f"engine auto: {', '.join(measured)} sources a second on {count}; {chosen} it is")
        return engine, chosen


class Trial:
    """Some of the sources, which all engines answer in turn."""

    def __init__(self, parts: list[list[int]], work: BatchWork[Any]) -> None:
        places = [place for part in parts for place in part]
        random.Random(0).shuffle(places)
        self.size, self.all, self.work = max(map(len, parts)), places, work
        self.places = places[:FEW]

    def grow(self, engine: Engine) -> None:
        """Takes as many sources as this engine answers in about a second."""
        _, rate = self.run(engine)
        self.places = self.all[: max(FEW, int(rate * SECOND))]

    def run(self, engine: Engine) -> tuple[list[Any], float]:
        """The best answers, and how many of them in a second."""
        parts = [self.places[i : i + self.size] for i in range(0, len(self.places), self.size)]
        began = time.perf_counter()
        found = list(engine.spread(self.work, parts))
        seconds = time.perf_counter() - began
        return [one for part in found for one in part], len(self.places) / seconds
