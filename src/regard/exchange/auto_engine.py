"""The engine auto: whichever is the fastest on the texts at hand, by measuring."""

import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from regard.core.errors import UserError, say
from regard.data.tensors.padded import Padded
from regard.inference.engine import Engine, Find
from regard.inference.fallback_engine import Fitting
from regard.search import Beam, Hypothesis, Sample, TokenConstraints
from regard.search.force import Stepper


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

    def __init__(self, folder: Path, engine: Engine) -> None:
        """folder: of the run; engine: that of torch."""
        self.folder, self.engine, self.device = folder, engine, engine.device
        self.torch, self.chosen = engine, NOT_YET

    def search(
        self,
        options: Beam | Sample,
        source: Padded,
        limits: Tensor,
        nbest: int = 1,
        wishes: Sequence[TokenConstraints] | None = None,
    ) -> list[list[Hypothesis]]:
        return self.engine.search(options, source, limits, nbest, wishes)

    def stepper(self) -> Stepper:
        return self.engine.stepper()

    def suited(self, parts: list[list[int]], find: Find) -> Engine:
        """The fastest for these sources, where there are enough; it stays that one."""
        if self.chosen == NOT_YET and sum(map(len, parts)) >= ENOUGH:
            self._use(*fastest(self.folder, self.torch, Trial(parts, find)))
        return self.engine

    def taken(self) -> list[str | None] | None:
        return None if self.chosen == NOT_YET else [self.chosen.name, self.chosen.quantize]

    def take(self, record: list[str | None] | None) -> None:
        if record is None:
            return
        name, quantize = record
        choice = EngineChoice(str(name), quantize)
        say(f"engine auto: {choice} again, as before")
        same = choice == TORCH
        self._use(self.torch if same else _open(self.folder, choice, self.torch), choice)

    def _use(self, engine: Engine, choice: EngineChoice) -> None:
        self.engine, self.device, self.chosen = engine, engine.device, choice


class Trial:
    """Some of the sources, which all engines answer in turn."""

    def __init__(self, parts: list[list[int]], find: Find) -> None:
        places = [place for part in parts for place in part]
        random.Random(0).shuffle(places)
        self.size, self.all, self.find = max(map(len, parts)), places, find
        self.places = places[:FEW]

    def grow(self, engine: Engine) -> None:
        """Takes as many sources as this engine answers in about a second."""
        _, rate = self.run(engine)
        self.places = self.all[: max(FEW, int(rate * SECOND))]

    def run(self, engine: Engine) -> tuple[list[Hypothesis], float]:
        """The best answers, and how many of them in a second."""
        parts = [self.places[i : i + self.size] for i in range(0, len(self.places), self.size)]
        began = time.perf_counter()
        found = list(engine.spread(lambda part: self.find(engine, part), parts))
        seconds = time.perf_counter() - began
        return [best[0] for part in found for best in part], len(self.places) / seconds


def fastest(folder: Path, torch: Engine, trial: Trial) -> tuple[Engine, EngineChoice]:
    """The fastest engine for a run folder whose answers are those of `torch`; says why."""
    trial.run(torch)  # what is done once only is done now
    trial.grow(torch)
    expected, best = trial.run(torch)
    engine, chosen, measured = torch, TORCH, [f"torch {best:.3g}"]
    for choice in OTHERS:
        try:
            candidate = _open(folder, choice, torch)
        except UserError as error:
            say(f"engine auto: without {choice}: {error}")
            continue
        trial.run(candidate)
        answers, rate = trial.run(candidate)
        same = sum(a.symbols == b.symbols for a, b in zip(answers, expected, strict=True))
        alike = same / len(expected)
        doubt = "" if alike >= ALIKE else f" ({alike:.0%} alike)"
        measured.append(f"{choice} {rate:.3g}{doubt}")
        if alike >= ALIKE and rate > best:
            engine, best, chosen = candidate, rate, choice
    say(f"engine auto: {', '.join(measured)} sources a second on {len(expected)}; {chosen} it is")
    return engine, chosen


def _open(folder: Path, choice: EngineChoice, torch: Engine) -> Engine:
    """The engine, which leaves what is too long for it to that of torch."""
    from regard.estimators import load
    from regard.tasks.answering import as_engine

    return Fitting(as_engine(load(folder, *choice).model_), torch)
