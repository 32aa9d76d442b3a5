"""Console output of training, on stderr: a live line in a terminal, otherwise plain lines."""

import shlex
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn

from regard.core.formatting import count_noun, duration
from regard.core.options import AutoSetting
from regard.metrics.metric_names import usual_metrics
from regard.training.log import Display, ValidationResult
from regard.training.loop import StepRecord
from regard.training.run import Run
from regard.training.validation_plan import ValidationPlan
from regard.views.report.score_table import format_score

EXTRA_METRICS = ("ser", "macro_f1", "rmse", "perplexity", "bits_per_character")
MAX_VALIDATIONS, VALIDATION_SECONDS = 20, 1.0  # shown; of more, one per second
LINE_SECONDS = 15.0  # between progress lines without a terminal


def choose_display() -> Display:
    """Return a live display if stderr is a terminal, otherwise a display of plain lines."""
    return LiveDisplay() if sys.stderr.isatty() else PlainDisplay()


class PlainDisplay(Display):
    """A display that prints plain lines to stderr."""

    def __init__(self) -> None:
        self.console = Console(
            stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True
        )
        self.last_score = ""
        self.validations, self.last_validation = 0, 0.0  # and training time of the last one shown
        self.last_line = 0.0  # training time in seconds at the last progress line

    def print(self, text: str, style: str = "") -> None:
        """Print one line."""
        self.console.print(text, style=style)

    def start(self, run: Run) -> None:
        """Print the data check, the automatic settings and the model size."""
        for line in (run.check.short() if run.check else []) + run.notes:
            self.print(line, "yellow" if line.startswith("warning:") else "")
        self.print_auto(run.auto_settings)
        device = run.device.type
        self.print(
            f"model: {run.parameters:,} parameters, device {device}, run folder {run.folder}"
        )
        if run.state.step:
            self.print(f"resumed at step {run.state.step}")

    def print_auto(self, auto_settings: Sequence[AutoSetting]) -> None:
        """Print one line per reason with the automatic settings."""
        values: dict[str, list[str]] = {}
        for setting in auto_settings:
            values.setdefault(setting.reason, []).append(f"{setting.key}={setting.value}")
        for reason, found in values.items():
            self.print(f"auto: {', '.join(found)} ({reason})")

    def step(self, run: Run, record: StepRecord, speed: float) -> None:
        """Print a progress line every few seconds."""
        if record.seconds - self.last_line >= LINE_SECONDS:
            self.last_line = record.seconds
            self.print(" | ".join(self.parts(run, record, speed)))

    def parts(self, run: Run, record: StepRecord, speed: float) -> list[str]:
        """Return the fields of the progress line."""
        parts = [f"step {record.step}", f"epoch {record.epoch:.1f}", f"loss {record.loss:.3f}"]
        if speed:
            unit = "positions" if run.task.source.media else "tokens"
            parts.append(f"{speed:,.0f} {unit}/s")
        parts.append(f"padding {100 * record.padding:.0f} %")
        if self.last_score:
            parts.append(self.last_score)
        return [*parts, f"{duration(time_left(run, record))} left"]

    def planned(self, run: Run, plan: ValidationPlan) -> None:
        """Print how many validations fit into the budget."""
        budget = duration(run.config.training.budget or 0.0)
        times = f"about {count_noun(plan.count, 'time')}, {duration(plan.seconds)} of the {budget}"
        text = times if plan.count else f"only after the {budget}, since it takes long"
        self.print(f"validation: {text}")

    def validated(self, run: Run, result: ValidationResult) -> None:
        """Print the dev scores and sample predictions."""
        metric = run.task.metric
        scores = result.evaluation.scores
        self.validations += 1
        recent = run.state.seconds - self.last_validation < VALIDATION_SECONDS
        if self.validations > MAX_VALIDATIONS and recent:
            return
        self.last_validation = run.state.seconds
        value = format_score(metric, scores[metric], 2)
        self.last_score = f"dev {metric} {format_score(metric, scores[metric], 1)}"
        saved = f" ({result.saved})" if result.saved else ""
        named = [name for name in EXTRA_METRICS if name in scores and name != metric]
        others = "".join(f", {name} {format_score(name, scores[name], 2)}" for name in named)
        subset = f"{len(result.examples):,} of " if len(result.examples) < len(run.dev) else ""
        self.print(
            f"step {run.state.step}: dev {metric} {value}{saved}{others} "
            f"on {subset}{run.task.count_label(len(run.dev))} of dev",
            "bold",
        )
        for sample in result.samples:
            self.print(sample_line(sample))

    def finished(self, run: Run, result: ValidationResult) -> None:
        """Print the scores of the best model on the full dev set."""
        self.close()
        self.print_auto(result.tuned)
        metric = run.task.metric
        self.print(
            f"done: {run.state.step} steps in {duration(run.state.seconds)}; "
            f"best checkpoint: step {run.state.best_step}",
            "bold",
        )
        for name in usual_metrics(metric, result.evaluation.scores):
            interval = ""
            if name == metric and name in result.intervals:  # perplexity has no interval
                low, high = (format_score(name, bound, 2) for bound in result.intervals[name])
                interval = f"   (95 %: {low} to {high})"
            value = format_score(name, result.evaluation.scores[name], 2)
            self.print(f"  dev {name:<18} {value:>8}{interval}")
        for baseline in result.baselines.scores[:1]:
            name = metric if metric in baseline.scores else next(iter(baseline.scores))
            value = format_score(name, baseline.scores[name], 2)
            self.print(f"  baseline {name:<13} {value:>8}   ({baseline.name})")
        for line in result.baselines.notes:
            self.print(f"note: {line}")
        if (report := run.folder / "report.html").exists():
            self.print(f"report: {report}")
        names = {"run": shlex.quote(str(run.folder)), "source": run.task.source.placeholder}
        self.print(f"next: {run.task.usage_hint.format(**names)}")

    def interrupted(self, run: Run) -> None:
        """Print where the run stopped and how to resume it."""
        self.close()
        step = run.state.step
        self.print(f"interrupted at step {step}; checkpoint saved in {run.folder}", "bold")
        folder = shlex.quote(str(run.folder))
        self.print(f"help: resume with regard train --out {folder} --resume")

    def close(self) -> None:
        """Stop the live display, if any."""


class LiveDisplay(PlainDisplay):
    """A display with a live progress line and messages above it."""

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
    """Return a line with a sample prediction and its reference, or with a generated text."""
    if sample.get("kind") == "generated":
        return f"  > {sample['text'][:200]!r}"
    text, references = sample["prediction"], sample["references"]
    if sample.get("kind") == "number":
        return f"  {sample['source'][:60]} -> {text}   expected: {references[0]}"
    mark = "=" if text in references else "x"
    expected = "" if mark == "=" else f"   expected: {references[0]}"
    return f"  {mark} {sample['source']} -> {text}{expected}"


def time_left(run: Run, record: StepRecord) -> float:
    """Return the estimated seconds to the end of the run."""
    left = record.seconds / max(record.progress, 1e-6) - record.seconds
    budget = run.config.training.budget
    return min(left, max(0.0, budget - record.seconds)) if budget else left
