"""The scores of a run: the main one for the top of the page, and a table of all."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from regard.metrics.metric_names import LABELS, METRICS, best_of, which_is_better
from regard.storage.run_folder import Record, RunFolder, number
from regard.views.report.html_parts import cells, note, section, table

UNBOUNDED = {name for name, metric in METRICS.items() if not metric.is_bounded}


class TaskView(NamedTuple):
    """How the runs of a task are shown. loss: the name of its loss; marked: whether a prediction is
    right or wrong, where of numbers near ones are good, too; labels: of its metrics."""

    loss: str = "Loss, nats per token"
    marked: bool = True
    labels: Mapping[str, str] = {}


TASKS = {
    "tag": TaskView(labels={"f1": "span F1"}),
    "classify": TaskView("Loss, nats per example"),
    "regress": TaskView("Loss", marked=False),
}


def task_view(run: RunFolder) -> TaskView:
    """How a run is shown, by its task."""
    return TASKS.get(str(run.facts.get("task")), TaskView())


@dataclass(frozen=True)
class Headline:
    """The main score: its metric, its value, where it comes from, its step and its interval."""

    metric: str
    value: float
    origin: str
    step: float | None = None
    bounds: tuple[float, float] | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds of the interval; without one, the value itself."""
        return self.bounds or (self.value, self.value)

    @property
    def interval(self) -> str:
        """The interval as text; empty if there is none."""
        return _interval(self.metric, self.bounds)


def measure(name: str, run: RunFolder) -> str:
    """The name of a measure in words."""
    return task_view(run).labels.get(name) or LABELS.get(name, name)


def shown(name: str, value: float, digits: int = 1) -> str:
    """A score as text: with `digits` after the point if 0 to 100, else its first four digits."""
    if name not in UNBOUNDED:
        return f"{value:.{digits}f}"
    if value and not 1e-3 <= abs(value) < 1e9:
        return f"{value:.3g}"
    places = 3 - math.floor(math.log10(abs(value))) if value else 3
    return f"{value:,.{max(places, 0)}f}"


def headline(run: RunFolder) -> Headline | None:
    """The main score of the finished run, else of its best validation so far, else None."""
    final = [run.final] if record_scores(run.final) else []
    scored = final or [line for line in run.dev if record_scores(line)]
    if not scored:
        return None
    names = known_first(record_scores(scored[-1]))
    wanted = run.facts.get("metric")
    metric = str(wanted if wanted in names else names[0])
    measured = [line for line in scored if metric in record_scores(line)]
    latest_first = reversed(measured)  # of equals training keeps the later one
    best = best_of(metric)(latest_first, key=lambda line: record_scores(line)[metric])
    examples = number(run.final.get("examples"))
    if not run.final:
        origin = f"best of {len(measured)} validations so far, at step {best.get('step', '?')}"
    else:
        origin = f"{examples:,.0f} dev examples" if examples is not None else "dev examples"
        origin = origin.removesuffix("s") if examples == 1 else origin
    step, bounds = number(best.get("step")), _bounds(best, metric)
    return Headline(metric, record_scores(best)[metric], origin, step, bounds)


def scores_section(run: RunFolder, main: Headline | None) -> str:
    """A table of all scores of the finished run, or of the last validation."""
    record = run.final if record_scores(run.final) else (run.dev[-1] if run.dev else {})
    scores = record_scores(record)
    if not scores or main is None:
        return ""
    names = known_first(scores)
    scale = "" if UNBOUNDED.issuperset(names) else "0 to 100"
    head = (
        f"<th>measure</th>{cells(['score', '95 % interval'], 'th')}{cells([scale], 'th', 'strip')}"
    )
    rows = [_row(run, record, name, name == main.metric) for name in names]
    step = "" if run.final else f"At step {escape(str(record.get('step')))}."
    return section("Scores", note(step), table("scores", head, rows))


def known_first(names: Collection[str]) -> list[str]:
    """The measures that are known in their usual order, then the others."""
    known = [name for name in METRICS if name in names]
    return known + [name for name in names if name not in METRICS]


def _row(run: RunFolder, record: Record, name: str, is_main: bool) -> str:
    value, bounds = record_scores(record)[name], _bounds(record, name)
    strip = "" if name in UNBOUNDED else score_strip(value, bounds)
    return (
        f'<tr{" class=main" if is_main else ""}><td title="{which_is_better(name)}">'
        f"{escape(measure(name, run))} "
        f'<span class="note">{escape(name)}</span></td>{cells([shown(name, value, 2)])}'
        f'<td class="number note">{_interval(name, bounds)}</td><td class="strip">{strip}</td></tr>'
    )


def score_strip(value: float, bounds: tuple[float, float] | None = None) -> str:
    """A rail from 0 to 100 with the interval as a bar and the score as a tick."""
    low, high = bounds or (value, value)
    low, high, at = (min(max(place, 0.0), 100.0) for place in (low, high, value))
    return (
        '<svg viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="rail" y="5.5" width="100" height="1"/>'
        f'<rect class="range" x="{low:.2f}" y="2" width="{high - low:.2f}" height="8"/>'
        f'<rect class="at" x="{at - 0.2:.2f}" y="0" width="0.4" height="12"/></svg>'
    )


def record_scores(record: Record) -> dict[str, float]:
    """The scores of a line of the log that are finite numbers."""
    scores = record.get("scores")
    if not isinstance(scores, dict):
        return {}
    return {name: v for name, value in scores.items() if (v := number(value)) is not None}


def _bounds(record: Record, name: str) -> tuple[float, float] | None:
    bounds = (record.get("intervals") or {}).get(name)
    if not isinstance(bounds, list | tuple) or len(bounds) != 2:
        return None
    low, high = number(bounds[0]), number(bounds[1])
    return None if low is None or high is None else (low, high)


def _interval(name: str, bounds: tuple[float, float] | None) -> str:
    return " to ".join(shown(name, bound) for bound in bounds) if bounds else ""
