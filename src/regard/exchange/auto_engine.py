"""The engine `auto`, which benchmarks all engines on the given texts and uses the fastest."""

import random
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from regard.core.errors import UserError, info
from regard.exchange.dev_metric import DevMetric
from regard.exchange.engine_records import EngineChoice, EngineRecord, load_record, save_record
from regard.inference.engine import BatchWork, Engine, Result
from regard.inference.fallback_engine import FallbackEngine
from regard.search.search import Search, SearchRequest, SearchResult

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
MAX_LOST = 0.3  # points of the metric on the dev set that int8 weights may lose


class AutoEngine(Engine):
    """An engine that uses torch until there are enough sources for a benchmark.

    What the selected engine does not support runs in torch. The selection is kept for this machine.
    """

    name = "auto"

    def __init__(
        self,
        engine: Engine,
        load: Callable[[EngineChoice], Engine],
        folder: Path | None = None,
        dev: DevMetric | None = None,
    ) -> None:
        """Start with the torch engine, or with the engine selected earlier for the model in folder.

        load: opens the engine of another choice. dev: shows what int8 weights lose.
        """
        self.engine, self.device, self.load, self.dev = engine, engine.device, load, dev
        self.torch, self.chosen, self.folder = engine, UNDECIDED, folder
        self.module, self.plain = engine.module, engine.plain
        record = None if folder is None else load_record(folder)
        if record is not None:
            self._reuse(record)

    def run(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        return self.engine.run(search, request)

    def run_rows(
        self, search: Search, rows: list[list[int]], limits: list[int], nbest: int
    ) -> list[SearchResult | None]:
        return self.engine.run_rows(search, rows, limits, nbest)

    def run_rest(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        return self.engine.run_rest(search, request)

    def stepper(self) -> Any:
        return self.engine.stepper()

    def for_alignment(self, request: SearchRequest) -> Any:
        return self.engine.for_alignment(request)

    def why_not_inspectable(self, folder: Path) -> str | None:
        return self.torch.why_not_inspectable(folder)

    def map_batches(self, work: BatchWork[Result], parts: list[list[int]]) -> Iterable[Result]:
        """Run `work` on all batches. The first call with enough sources selects the engine."""
        if self.chosen == UNDECIDED and sum(map(len, parts)) >= MIN_SOURCES:
            self._select(SpeedTrial(parts, work))
        return self.engine.map_batches(work, parts)

    def save_choice(self) -> list[str | None] | None:
        return None if self.chosen == UNDECIDED else [self.chosen.name, self.chosen.quantize]

    def restore_choice(self, record: list[str | None] | None) -> None:
        if record is None:
            return
        name, quantize = record
        choice = EngineChoice(str(name), quantize)
        if choice != self.chosen:
            info(f"engine auto: using {choice}, as before")
            self._use(self._open(choice), choice)

    def _reuse(self, record: EngineRecord) -> None:
        """Use the engine that was selected earlier, if it is still installed."""
        try:
            self._use(self._open(record.choice), record.choice)
        except UserError as error:
            info(f"engine auto: {record.choice} was the fastest, but: {error}")
            return
        info(str(record))

    def _use(self, engine: Engine, choice: EngineChoice) -> None:
        self.engine, self.device, self.chosen = engine, engine.device, choice
        self.takes_rows = engine.takes_rows

    def _open(self, choice: EngineChoice) -> Engine:
        """Open an engine that falls back to torch for what it does not support."""
        return self.torch if choice == TORCH else FallbackEngine(self.load(choice), self.torch)

    def _select(self, trial: "SpeedTrial") -> None:
        """Use the fastest engine, and keep the selection for this machine."""
        engine, chosen, why = self._fastest(trial)
        info(f"engine auto: {why}; using {chosen}")
        self._use(engine, chosen)
        if self.folder is not None:
            save_record(self.folder, EngineRecord(chosen, why))

    def _fastest(self, trial: "SpeedTrial") -> tuple[Engine, EngineChoice, str]:
        """Return the fastest engine whose predictions are good enough, and all speeds."""
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
            is_good, remark = True, ""
            if speed > best or choice.quantize is None:
                is_good, remark = self._judge(candidate, choice, same / len(expected))
            measured.append(f"{choice} {speed:.3g}{remark}")
            if is_good and speed > best:
                engine, best, chosen = candidate, speed, choice
        return engine, chosen, f"{', '.join(measured)} sources/s"

    def _judge(self, engine: Engine, choice: EngineChoice, agreement: float) -> tuple[bool, str]:
        """Return whether the predictions of an engine are good enough, and a remark.

        Quantized weights are compared with torch on the dev set, if there is one. Otherwise
        agreement, the fraction of predictions equal to torch's, decides.
        """
        lost = self.dev.lost(engine) if self.dev is not None and choice.quantize else None
        if lost is not None and self.dev is not None:
            return lost <= MAX_LOST, f" ({self.dev.name} {-lost:+.2f} on dev)"
        is_good = agreement >= MIN_AGREEMENT
        return is_good, "" if is_good else f" ({agreement:.0%} equal)"


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
