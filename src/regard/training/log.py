"""The training log: the writer of metrics.jsonl, and the base class of displays."""

import contextlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.core import parallel
from regard.core.options import AutoSetting
from regard.data.reading.read import Example
from regard.optim.gradient_noise import scale
from regard.tasks.baselines import BaselineResults
from regard.tasks.values import Evaluation
from regard.training.loop import StepRecord
from regard.training.run import Run
from regard.training.validation_plan import ValidationPlan

LOG_EVERY = 10  # steps per line of metrics.jsonl


class Display:
    """A display of training progress. This base class shows nothing; subclasses override it."""

    def start(self, run: Run) -> None: ...

    def step(self, run: Run, record: StepRecord, speed: float) -> None: ...

    def planned(self, run: Run, plan: ValidationPlan) -> None: ...

    def validated(self, run: Run, result: "ValidationResult") -> None: ...

    def finished(self, run: Run, result: "ValidationResult") -> None: ...

    def interrupted(self, run: Run) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class ValidationResult:
    """The result of a validation.

    examples: the dev examples that were scored. saved: why the model was saved; empty if an
    earlier model stays. intervals: confidence interval of each metric. samples: example
    predictions to show. tuned: search settings tuned on the dev set. baselines: their scores on
    the full dev set, at the end of training.
    """

    evaluation: Evaluation
    examples: list[Example]
    saved: str
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    samples: list[dict[str, Any]] = field(default_factory=list)
    tuned: Sequence[AutoSetting] = ()
    baselines: BaselineResults = field(default_factory=BaselineResults)


class Log:
    """The writer of metrics.jsonl, one line every few steps. It also notifies the display.

    The sums since the last line (`log_window`) are part of the training state. A resumed run
    therefore writes the same lines as an uninterrupted run.
    """

    def __init__(self, run: Run, display: Display) -> None:
        self.run = run
        self.display = display
        self.since = run.state.seconds
        self.speed = 0.0

    def add(self, record: StepRecord) -> None:
        """Add an update to the sums, write a line if one is due, and notify the display."""
        window = self.run.state.log_window
        norm = record.norm if math.isfinite(record.norm) else 0.0  # float16: a skipped step
        each = {
            "steps": 1,
            "tokens": record.tokens,
            "grad_norm": norm,
            "padding_fraction": record.padding,
        }
        named = {"loss": record.loss, **record.parts}
        each |= {f"mean {name}": record.tokens * value for name, value in named.items()}
        each |= {f"norm {name}": value for name, value in record.norms.items() if norm}
        for name, value in each.items():
            window[name] = window.get(name, 0.0) + value
        window |= {"lr": record.lr, "epoch": record.epoch}
        if record.step % LOG_EVERY == 0:
            self.write()
        self.display.step(self.run, record, self.speed)

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Exclude the time inside the block from the training speed."""
        start = self.run.state.seconds
        yield
        self.run.read_clock()
        self.since += self.run.state.seconds - start

    def write(self) -> None:
        """Write one line with means over the updates since the last line."""
        state = self.run.state
        window = state.log_window
        if not window:
            return
        state.log_window = {}
        steps, tokens = window["steps"], window["tokens"]
        self.speed = tokens / max(1e-9, state.seconds - self.since)
        self.since = state.seconds
        means = {n.removeprefix("mean "): v / tokens for n, v in window.items() if n[:5] == "mean "}
        norms = {n.removeprefix("norm "): v / steps for n, v in window.items() if n[:5] == "norm "}
        line = {
            "kind": "train",
            "step": state.step,
            "epoch": window["epoch"],
            **{name: mean for name, mean in means.items() if not math.isnan(mean)},
            "lr": window["lr"],
            "grad_norm": window["grad_norm"] / steps,
            "grad_norms": norms,
            "grad_noise_scale": scale(state.noise_means),
            "padding_fraction": window["padding_fraction"] / steps,
            "tokens": tokens,
            "tokens_per_second": self.speed,
            "elapsed_seconds": state.seconds,
        }
        if parallel.is_main_process():
            append(self.run.folder, "metrics.jsonl", line)


def append(folder: Path, name: str, record: dict[str, Any]) -> None:
    """Append a record as one line to a JSON-lines file in the run folder."""
    with open(folder / name, "a", encoding="utf-8") as file:
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
