"""The engine `auto`, which benchmarks all engines on the given texts and uses the fastest."""

import random
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from regard.core.errors import UserError, info
from regard.inference.engine import BatchWork, Engine, Result
from regard.inference.fallback_engine import FallbackEngine
from regard.search.search import Search, SearchRequest, SearchResult


class EngineChoice(NamedTuple):
    """The name of an engine, and the type of its weights if they are quantized."""

    name: str
    quantize: str | None = None

    def __str__(self) -> str:
        return f"{self.name} {self.quantize or ''}".strip()


UNDECIDED, TORCH = EngineChoice(""), EngineChoice("torch")
OTHERS = (  # int8 weights in torch save memory, not time
    EngineChoice("ctranslate2"),
    EngineChoice("ctranslate2", "int8"),
    EngineChoice("onnx"),
)
MIN_SOURCES = 200  # with fewer sources, a benchmark does not pay off
TRIAL_SECONDS = 1.0  # approximate duration of a trial
FIRST_SOURCES = 8
MIN_AGREEMENT = 0.95  # fraction of best hypotheses equal to torch's


class AutoEngine(Engine):
    """An engine that uses torch until there are enough sources for a benchmark."""

    name = "auto"

    def __init__(self, engine: Engine, load: Callable[[EngineChoice], Engine]) -> None:
        """Start with the torch engine. load: opens the engine of another choice."""
        self.engine, self.device, self.load = engine, engine.device, load
        self.torch, self.chosen = engine, UNDECIDED

    def run(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        return self.engine.run(search, request)

    def stepper(self) -> Any:
        return self.engine.stepper()

    def for_alignment(self, request: SearchRequest) -> Any:
        return self.engine.for_alignment(request)

    def map_batches(self, work: BatchWork[Result], parts: list[list[int]]) -> Iterable[Result]:
        """Run `work` on all batches. The first call with enough sources selects the engine."""
        if self.chosen == UNDECIDED and sum(map(len, parts)) >= MIN_SOURCES:
            self._use(*self._fastest(SpeedTrial(parts, work)))
        return self.engine.map_batches(work, parts)

    def save_choice(self) -> list[str | None] | None:
        return None if self.chosen == UNDECIDED else [self.chosen.name, self.chosen.quantize]

    def restore_choice(self, record: list[str | None] | None) -> None:
        if record is None:
            return
        name, quantize = record
        choice = EngineChoice(str(name), quantize)
        info(f"engine auto: using {choice}, as before")
        self._use(self.torch if choice == TORCH else self._open(choice), choice)

    def _use(self, engine: Engine, choice: EngineChoice) -> None:
        self.engine, self.device, self.chosen = engine, engine.device, choice

    def _open(self, choice: EngineChoice) -> Engine:
        """Open an engine that falls back to torch for long sequences."""
        return FallbackEngine(self.load(choice), self.torch)

    def _fastest(self, trial: "SpeedTrial") -> tuple[Engine, EngineChoice]:
        """Return the fastest engine whose predictions agree with torch, and print the speeds."""
        trial.run(self.torch)  # warm up
        trial.grow(self.torch)
        expected, best = trial.run(self.torch)
        engine, chosen, measured = self.torch, TORCH, [f"torch {best:.3g}"]
        for choice in OTHERS:
            try:
                candidate = self._open(choice)
            except UserError as error:
                info(f"engine auto: skipping {choice}: {error}")
                continue
            trial.run(candidate)
            hypotheses, speed = trial.run(candidate)
            same = sum(a.tokens == b.tokens for a, b in zip(hypotheses, expected, strict=True))
            agreement = same / len(expected)
            doubt = "" if agreement >= MIN_AGREEMENT else f" ({agreement:.0%} equal)"
            measured.append(f"{choice} {speed:.3g}{doubt}")
            if agreement >= MIN_AGREEMENT and speed > best:
                engine, best, chosen = candidate, speed, choice
        info(f"engine auto: {', '.join(measured)} sources/s; using {chosen}")
        return engine, chosen


class SpeedTrial:
    """A sample of the sources for a speed comparison."""

    def __init__(self, parts: list[list[int]], work: BatchWork[Any]) -> None:
        rows = [row for part in parts for row in part]
        random.Random(0).shuffle(rows)
        self.size, self.all, self.work = max(map(len, parts)), rows, work
        self.rows = rows[:FIRST_SOURCES]

    def grow(self, engine: Engine) -> None:
        """Set the sample size to what this engine predicts in about a second."""
        _, speed = self.run(engine)
        self.rows = self.all[: max(FIRST_SOURCES, int(speed * TRIAL_SECONDS))]

    def run(self, engine: Engine) -> tuple[list[Any], float]:
        """Predict the sample; return the best hypotheses and the number of sources per second."""
        parts = [self.rows[i : i + self.size] for i in range(0, len(self.rows), self.size)]
        start = time.perf_counter()
        found = list(engine.map_batches(self.work, parts))
        seconds = time.perf_counter() - start
        return [one for part in found for one in part], len(self.rows) / seconds
