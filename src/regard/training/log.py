"""What a session shows and writes down as it goes on."""

import contextlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.data.read import Example
from regard.evaluation import Evaluation
from regard.training.loop import Record
from regard.training.run import Run

LOG_EVERY = 10  # steps in a line of metrics.jsonl


class Display:
    """What is shown while a session goes on: here nothing; other displays override."""

    def start(self, run: Run) -> None: ...

    def step(self, run: Run, record: Record, speed: float) -> None: ...

    def validated(self, run: Run, result: "Validated") -> None: ...

    def finished(self, run: Run, result: "Validated") -> None: ...

    def interrupted(self, run: Run) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Validated:
    """A validation: its scores, on which examples, and whether the model is the best so far."""

    evaluation: Evaluation
    examples: list[Example]
    best: bool
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    samples: list[dict[str, Any]] = field(default_factory=list)


class Log:
    """Writes a line of metrics.jsonl every few steps and tells the display each step."""

    def __init__(self, run: Run, display: Display) -> None:
        self.run = run
        self.display = display
        self.records: list[Record] = []
        self.since = run.progress.seconds
        self.speed = 0.0

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *_: object) -> None:
        self.write()

    def add(self, record: Record) -> None:
        """Notes one update."""
        self.records.append(record)
        if record.step % LOG_EVERY == 0:
            self.write()
        self.display.step(self.run, record, self.speed)

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Time in here is no training: it does not count in the speed."""
        self.write()
        yield
        self.run.read_clock()
        self.since = self.run.progress.seconds

    def write(self) -> None:
        """One line for the updates since the last line."""
        if not self.records:
            return
        records, last = self.records, self.records[-1]
        tokens = sum(r.tokens for r in records)
        self.speed = tokens / max(1e-9, last.seconds - self.since)
        self.since, self.records = last.seconds, []
        line = {
            "kind": "train",
            "step": last.step,
            "epoch": last.epoch,
            **_means(records, tokens),
            "lr": last.lr,
            "norm": sum(r.norm for r in records) / len(records),
            "padding": sum(r.padding for r in records) / len(records),
            "tokens": tokens,
            "tokens_per_second": self.speed,
            "seconds": last.seconds,
        }
        append(self.run.folder, "metrics.jsonl", line)


def _means(records: list[Record], tokens: float) -> dict[str, float]:
    """The loss and its parts over several updates; a model that is solved has none."""
    named = [{"loss": record.loss, **record.parts} for record in records]
    names = ["loss", *sorted({name for record in records for name in record.parts})]
    means = {
        name: sum(r.tokens * parts.get(name, 0.0) for r, parts in zip(records, named, strict=True))
        / tokens
        for name in names
    }
    return {name: mean for name, mean in means.items() if not math.isnan(mean)}


def append(folder: Path, name: str, record: dict[str, Any]) -> None:
    """Adds a line to a JSON-lines file of the run."""
    with open(folder / name, "a", encoding="utf-8") as file:
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
