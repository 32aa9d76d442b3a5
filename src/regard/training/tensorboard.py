"""TensorBoard: the lines of a run's logs as event files, in `RUN/tensorboard/`.

What is written comes from metrics.jsonl and samples.jsonl and from nowhere else, so a curve in
TensorBoard has the points of the report. A resumed run writes all of its points anew: those of a
part that is done again are gone, and none is there twice.
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

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

NO_CURVES = {
    "step",
    "elapsed_seconds",
    "epoch",
    "tokens",
    "examples",
}  # where and on what, not how well
FLUSH_SECONDS = 10


class TensorBoard(Display):
    """Another display, with each new line of the logs carried over into an event file."""

    def __init__(self, shown: Display | None = None) -> None:
        self.shown = shown or Display()
        self.writer: SummaryWriter | None = None
        self.began = 0.0
        self.times: dict[int, float] = {}
        self.logs: dict[str, Tail] = {}

    def start(self, run: Run) -> None:
        """Begins an event file, with everything that the logs hold already."""
        from torch.utils.tensorboard import SummaryWriter

        self.shown.start(run)
        # From step 0 on, what older files of a resumed run say is void. They stay, since a
        # TensorBoard that is looking on loses its way where its file is gone.
        folder = str(run.folder / TENSORBOARD)
        self.writer = SummaryWriter(folder, purge_step=0, flush_secs=FLUSH_SECONDS)
        self.began = _began(run)
        self.logs = {name: Tail(run.folder / f"{name}.jsonl") for name in ("metrics", "samples")}
        settings = f"```\n{run.config.dump()}```"
        self.writer.add_text("settings", settings, 0, walltime=self.began)
        self.follow()

    def step(self, run: Run, record: StepRecord, speed: float) -> None:
        self.shown.step(run, record, speed)
        self.follow()

    def validated(self, run: Run, result: ValidationResult) -> None:
        self.shown.validated(run, result)
        self.follow()

    def finished(self, run: Run, result: ValidationResult) -> None:
        self.shown.finished(run, result)
        self.follow()

    def interrupted(self, run: Run) -> None:
        self.shown.interrupted(run)
        self.follow()

    def close(self) -> None:
        """The rest of the logs, also where training ended with an error."""
        self.shown.close()
        if self.writer is not None:
            self.follow()
            self.writer.close()
            self.writer = None

    def follow(self) -> None:
        """Writes what the logs have got since the last time."""
        assert self.writer is not None
        for line in self.logs["metrics"].new():
            when = self.began + line["elapsed_seconds"]
            self.times[line["step"]] = when
            for name, value in curves(line):
                self.writer.add_scalar(name, value, line["step"], walltime=when)
        samples = self.logs["samples"].new()
        for step, group in itertools.groupby(samples, key=lambda sample: int(sample["step"])):
            self.writer.add_text("samples", table(list(group)), step, walltime=self.times[step])


class Tail:
    """The end of a file of JSON lines that somebody else is writing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place = 0

    def new(self) -> Iterator[dict[str, Any]]:
        """The lines that were added since the last time, whole ones only."""
        if not self.path.exists() or self.path.stat().st_size == self.place:
            return
        with open(self.path, "rb") as file:
            file.seek(self.place)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self.place += len(line)
                yield json.loads(line)


def followed(training: Training, display: Display) -> Display:
    """The display, together with everything else that the settings want to follow the run."""
    check_followers(training)
    return TensorBoard(display) if training.tensorboard else display


def check_followers(training: Training) -> None:
    """Refuses to begin where a package is missing."""
    if training.tensorboard and find_spec("tensorboard") is None:
        raise UserError(
            "training.tensorboard: TensorBoard is not installed; "
            "pip install 'regard[tensorboard]', or leave the setting out"
        )


def curves(line: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """The names and values of what a line of metrics.jsonl adds to the curves."""
    for name, value in {**line, **line.get("scores", {})}.items():
        if isinstance(value, int | float) and name not in NO_CURVES:
            yield f"{line['kind']}/{name}", value
    for part, value in line.get("grad_norms", {}).items():
        yield f"grad_norm/{part}", value


def table(samples: list[dict[str, Any]]) -> str:
    """Predictions beside what was wanted, or texts that the model wrote, as Markdown."""
    if samples[0].get("kind") == "generated":
        return "\n\n---\n\n".join(_cell(sample["text"]) for sample in samples)
    rows = [
        f"| {_cell(s['source'])} | {_cell(s['prediction'])} | "
        f"{' or '.join(map(_cell, s['references']))} |"
        for s in samples
    ]
    return "\n".join(["| source | prediction | reference |", "|---|---|---|", *rows])


def _cell(value: object) -> str:
    """A text that Markdown shows as it is."""
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    plain = re.sub(r"[!-/:-@\[-`{-~]", lambda mark: f"&#{ord(mark[0])};", text)
    return plain.replace("\n", "<br>")


def _began(run: Run) -> float:
    """When the run began; a point stands at this time plus its seconds of training."""
    started = read_json(run.folder / "run.json").get("started")
    if started:
        return datetime.datetime.fromisoformat(started).timestamp()
    return time.time() - run.state.seconds
