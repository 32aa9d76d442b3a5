"""TensorBoard event files in `RUN/tensorboard/`, written from the logs of a run.

All values come from metrics.jsonl and samples.jsonl, so TensorBoard shows the same points as the
report. On resume, event files are rebuilt from the logs, so no point is duplicated.
"""

import datetime
import itertools
import json
import re
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.core.errors import UserError
from regard.core.files import read_json
from regard.optim.training_options import Training
from regard.storage.output_folder import TENSORBOARD
from regard.training.log import Display, ValidationResult
from regard.training.loop import StepRecord
from regard.training.run import Run
from regard.training.validation_plan import ValidationPlan

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

NOT_PLOTTED = {
    "step",
    "elapsed_seconds",
    "epoch",
    "tokens",
    "examples",
}
FLUSH_SECONDS = 10


class TensorBoard(Display):
    """A wrapper of a display that copies each new log line to an event file."""

    def __init__(self, display: Display | None = None) -> None:
        self.display = display or Display()
        self.writer: SummaryWriter | None = None
        self.start_time = 0.0
        self.times: dict[int, float] = {}
        self.logs: dict[str, Tail] = {}

    def start(self, run: Run) -> None:
        """Start an event file with all existing log lines."""
        from torch.utils.tensorboard import SummaryWriter

        self.display.start(run)
        # purge_step makes TensorBoard ignore the older event files of a resumed run. They are
        # not deleted, since a running TensorBoard does not handle deleted files.
        folder = str(run.folder / TENSORBOARD)
        self.writer = SummaryWriter(folder, purge_step=0, flush_secs=FLUSH_SECONDS)
        self.start_time = _start_time(run)
        self.logs = {name: Tail(run.folder / f"{name}.jsonl") for name in ("metrics", "samples")}
        settings = f"```\n{run.config.dump()}```"
        self.writer.add_text("settings", settings, 0, walltime=self.start_time)
        self.follow()

    def step(self, run: Run, record: StepRecord, speed: float) -> None:
        self.display.step(run, record, speed)
        self.follow()

    def planned(self, run: Run, plan: ValidationPlan) -> None:
        self.display.planned(run, plan)

    def validated(self, run: Run, result: ValidationResult) -> None:
        self.display.validated(run, result)
        self.follow()

    def finished(self, run: Run, result: ValidationResult) -> None:
        self.display.finished(run, result)
        self.follow()

    def interrupted(self, run: Run) -> None:
        self.display.interrupted(run)
        self.follow()

    def close(self) -> None:
        """Copy the remaining log lines and close the event file, also after failed training."""
        self.display.close()
        if self.writer is not None:
            self.follow()
            self.writer.close()
            self.writer = None

    def follow(self) -> None:
        """Copy the new lines of the logs to the event file."""
        assert self.writer is not None
        for line in self.logs["metrics"].new():
            when = self.start_time + line["elapsed_seconds"]
            self.times[line["step"]] = when
            for name, value in curves(line):
                self.writer.add_scalar(name, value, line["step"], walltime=when)
        samples = self.logs["samples"].new()
        for step, group in itertools.groupby(samples, key=lambda sample: int(sample["step"])):
            self.writer.add_text("samples", table(list(group)), step, walltime=self.times[step])


class Tail:
    """Incremental reader of a growing JSON-lines file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0

    def new(self) -> Iterator[dict[str, Any]]:
        """Yield the complete lines added since the last call."""
        if not self.path.exists() or self.path.stat().st_size == self.offset:
            return
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self.offset += len(line)
                yield json.loads(line)


def with_tensorboard(training: Training, display: Display) -> Display:
    """Return the display, wrapped in TensorBoard if training.tensorboard is set."""
    check_tensorboard(training)
    return TensorBoard(display) if training.tensorboard else display


def check_tensorboard(training: Training) -> None:
    """Raise UserError if TensorBoard is needed and not installed."""
    if training.tensorboard and find_spec("tensorboard") is None:
        raise UserError(
            "training.tensorboard: TensorBoard is not installed",
            help="pip install 'regard[tensorboard]'",
        )


def curves(line: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the tag and value of each number to plot from a line of metrics.jsonl."""
    for name, value in {**line, **line.get("scores", {})}.items():
        if isinstance(value, int | float) and name not in NOT_PLOTTED:
            yield f"{line['kind']}/{name}", value
    for part, value in line.get("grad_norms", {}).items():
        yield f"grad_norm/{part}", value


def table(samples: list[dict[str, Any]]) -> str:
    """Return a Markdown table of predictions and references, or Markdown of generated texts."""
    if samples[0].get("kind") == "generated":
        return "\n\n---\n\n".join(_cell(sample["text"]) for sample in samples)
    rows = [
        f"| {_cell(s['source'])} | {_cell(s['prediction'])} | "
        f"{' or '.join(map(_cell, s['references']))} |"
        for s in samples
    ]
    return "\n".join(["| source | prediction | reference |", "|---|---|---|", *rows])


def _cell(value: object) -> str:
    """Return a value as text, escaped for Markdown."""
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    plain = re.sub(r"[!-/:-@\[-`{-~]", lambda mark: f"&#{ord(mark[0])};", text)
    return plain.replace("\n", "<br>")


def _start_time(run: Run) -> float:
    """Return the Unix time when the run started; each point adds its training time to it."""
    started = read_json(run.folder / "run.json").get("started")
    if started:
        return datetime.datetime.fromisoformat(started).timestamp()
    return time.time() - run.state.seconds
