"""What a training run shows: a live line in a terminal, plain lines elsewhere. All on stderr."""

import itertools
import shlex
import sys
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn

from regard.core.formatting import duration
from regard.training.log import Display, ValidationResult
from regard.training.loop import StepRecord
from regard.training.run import Run
from regard.views.report.score_table import shown

BESIDE = ("ser", "macro_f1", "rmse", "perplexity", "bits_per_character")
PLAIN_EVERY = 15.0  # seconds between lines where there is no terminal


def choose_display() -> Display:
    """The live line in a terminal, plain lines elsewhere."""
    return LiveDisplay() if sys.stderr.isatty() else Plain()


class Plain(Display):
    """Plain lines on stderr."""

    def __init__(self) -> None:
        self.console = Console(
            stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True
        )
        self.measure = ""
        self.shown = 0.0

    def say(self, text: str, style: str = "") -> None:
        """One line."""
        self.console.print(text, style=style)

    def start(self, run: Run) -> None:
        """What will be trained, on what, and what was chosen."""
        for line in (run.check.short() if run.check else []) + run.notes:
            self.say(line, "yellow" if line.startswith("warning:") else "")
        for reason, settings in itertools.groupby(run.auto_settings, key=lambda one: one.reason):
            values = ", ".join(f"{setting.key}={setting.value}" for setting in settings)
            self.say(f"auto: {values} ({reason})")
        device = run.device.type
        self.say(f"model: {run.parameters:,} parameters on {device}; folder {run.folder}")
        if run.state.step:
            self.say(f"resumed at step {run.state.step}")

    def step(self, run: Run, record: StepRecord, speed: float) -> None:
        """A line now and then."""
        if record.seconds - self.shown >= PLAIN_EVERY:
            self.shown = record.seconds
            self.say(" | ".join(self.parts(run, record, speed)))

    def parts(self, run: Run, record: StepRecord, speed: float) -> list[str]:
        """The parts of the progress line."""
        parts = [f"step {record.step}", f"epoch {record.epoch:.1f}", f"loss {record.loss:.3f}"]
        if speed:
            parts.append(f"{speed:,.0f} tokens/s")
        parts.append(f"padding {100 * record.padding:.0f} %")
        if self.measure:
            parts.append(self.measure)
        return [*parts, f"{duration(time_left(run, record))} left"]

    def validated(self, run: Run, result: ValidationResult) -> None:
        """The dev scores and a few predictions."""
        metric = run.task.metric
        scores = result.evaluation.scores
        value = shown(metric, scores[metric], 2)
        self.measure = f"dev {metric} {shown(metric, scores[metric], 1)}"
        best = " (best so far)" if result.best else ""
        named = [name for name in BESIDE if name in scores and name != metric]
        others = "".join(f", {name} {shown(name, scores[name], 2)}" for name in named)
        part = f"{len(result.examples):,} of " if len(result.examples) < len(run.dev) else ""
        self.say(
            f"step {run.state.step}: dev {metric} {value}{best}{others} "
            f"on {part}{run.task.count_label(len(run.dev))} of dev",
            "bold",
        )
        for sample in result.samples:
            self.say(sample_line(sample))

    def finished(self, run: Run, result: ValidationResult) -> None:
        """The scores of the best model on the whole dev part."""
        self.close()
        metric = run.task.metric
        self.say(
            f"done: {run.state.step} steps in {duration(run.state.seconds)}; the best model "
            f"is of step {run.state.best_step}",
            "bold",
        )
        names = [metric, *(n for n in result.evaluation.scores if n != metric)]
        for name in names:
            interval = ""
            if name == metric and name in result.intervals:  # perplexity has none
                low, high = (shown(name, bound, 2) for bound in result.intervals[name])
                interval = f"   (95 %: {low} to {high})"
            value = shown(name, result.evaluation.scores[name], 2)
            self.say(f"  dev {name:<18} {value:>8}{interval}")
        self.say(f"report: {run.folder / 'report.html'}")
        self.say(f"next: {run.task.usage_hint.format(run=shlex.quote(str(run.folder)))}")

    def interrupted(self, run: Run) -> None:
        """Where things stand and how to go on."""
        self.close()
        self.say(
            f"stopped at step {run.state.step}; everything is saved in {run.folder}. "
            f"Go on with: regard train --out {shlex.quote(str(run.folder))} --resume",
            "bold",
        )

    def close(self) -> None:
        """Ends a live line."""


class LiveDisplay(Plain):
    """A progress line that is drawn anew, with messages above it."""

    def __init__(self) -> None:
        super().__init__()
        self.progress = Progress(
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:3.0f}% {task.description}"),
            console=self.console,
            transient=True,
        )
        self.task = self.progress.add_task("starting", total=1.0)

    def start(self, run: Run) -> None:
        super().start(run)
        self.progress.start()

    def step(self, run: Run, record: StepRecord, speed: float) -> None:
        line = escape(" | ".join(self.parts(run, record, speed)))
        self.progress.update(self.task, completed=record.progress, description=line)

    def close(self) -> None:
        self.progress.stop()


def sample_line(sample: dict[str, Any]) -> str:
    """A prediction beside what was wanted, or a text that the model wrote."""
    if sample.get("kind") == "generated":
        return f"  > {sample['text'][:200]!r}"
    text, references = sample["prediction"], sample["references"]
    if sample.get("kind") == "number":
        return f"  {sample['source'][:60]} -> {text}   right: {references[0]}"
    mark = "=" if text in references else "x"
    wanted = "" if mark == "=" else f"   wanted: {references[0]}"
    return f"  {mark} {sample['source']} -> {text}{wanted}"


def time_left(run: Run, record: StepRecord) -> float:
    """Seconds to the end of the run, if it goes on as it did."""
    return record.seconds / max(record.progress, 1e-6) - record.seconds
