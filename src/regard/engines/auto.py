"""The engine auto: whichever is the fastest on the texts at hand, by measuring."""

import random
import time
from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from regard.data.batch import Padded
from regard.engines.base import Engine, Find
from regard.errors import UserError, say
from regard.search import Beam, Hypothesis, Sample, Wish
from regard.search.force import Stepper

OTHERS = (("torch", "int8"), ("ctranslate2", None), ("ctranslate2", "int8"), ("onnx", None))
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
        self.measured = False

    def search(
        self,
        options: Beam | Sample,
        source: Padded,
        limits: Tensor,
        nbest: int = 1,
        wishes: Sequence[Wish] | None = None,
    ) -> list[list[Hypothesis]]:
        return self.engine.search(options, source, limits, nbest, wishes)

    def stepper(self) -> Stepper:
        return self.engine.stepper()

    def suited(self, parts: list[list[int]], find: Find) -> Engine:
        """The fastest for these sources, where there are enough; it stays that one."""
        if not self.measured and sum(map(len, parts)) >= ENOUGH:
            self.measured = True
            self.engine = fastest(self.folder, self.engine, Trial(parts, find))
            self.device = self.engine.device
        return self.engine


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


def fastest(folder: Path, engine: Engine, trial: Trial) -> Engine:
    """The fastest engine for a run folder whose answers are those of `engine`; says why."""
    trial.run(engine)  # what is done once only is done now
    trial.grow(engine)
    expected, best = trial.run(engine)
    name, measured = "torch", [f"torch {best:.3g}"]
    for other, quantize in OTHERS:
        shown = f"{other} {quantize or ''}".strip()
        try:
            candidate = _open(folder, other, quantize)
        except UserError as error:
            say(f"engine auto: without {shown}: {error}")
            continue
        trial.run(candidate)
        answers, rate = trial.run(candidate)
        same = sum(a.symbols == b.symbols for a, b in zip(answers, expected, strict=True))
        alike = same / len(expected)
        measured.append(f"{shown} {rate:.3g}" + ("" if alike >= ALIKE else f" ({alike:.0%} alike)"))
        if alike >= ALIKE and rate > best:
            engine, best, name = candidate, rate, shown
    say(f"engine auto: {', '.join(measured)} sources a second on {len(expected)}; {name} it is")
    return engine


def _open(folder: Path, name: str, quantize: str | None) -> Engine:
    from regard.estimators import load
    from regard.tasks.answering import as_engine

    return as_engine(load(folder, name, quantize).model_)
