"""The scores of a run: the main score (headline), and a table of all scores."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from regard.metrics.metric_names import LABELS, METRICS, best_of, usual_metrics, which_is_better
from regard.storage.run_folder import Record, RunFolder, number
from regard.views.report.html_parts import cells, note, section, sentences, table

UNBOUNDED = {name for name, metric in METRICS.items() if not metric.is_bounded}


class TaskView(NamedTuple):
    """Display options of a task.

    loss: title of the loss curve. marked: whether to mark predictions as correct or wrong. labels:
    names of metrics that differ from `METRICS`.
    """

    loss: str = "Loss, nats per token"
    marked: bool = True
    labels: Mapping[str, str] = {}


TASKS = {
    "tag": TaskView(labels={"f1": "span F1"}),
    "classify": TaskView("Loss, nats per example"),
    "regress": TaskView("Loss", marked=False),
    "synthesize": TaskView("Loss per frame", marked=False),
}


def task_view(run: RunFolder) -> TaskView:
    """Return the display options for the task of a run."""
    return TASKS.get(str(run.facts.get("task")), TaskView())


class Baseline(NamedTuple):
    """The scores of a trivial baseline on the dev set."""

    name: str
    scores: dict[str, float]


@dataclass(frozen=True)
class Headline:
    """The main score. origin: a text such as `500 dev examples`. bounds: 95 % interval.

    baseline: the best one, if it has this metric.
    """

    metric: str
    value: float
    origin: str
    step: float | None = None
    bounds: tuple[float, float] | None = None
    baseline: "Baseline | None" = None

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds of the interval; without an interval, the value itself."""
        return self.bounds or (self.value, self.value)

    @property
    def interval(self) -> str:
        """The interval as text, or an empty string."""
        return _interval(self.metric, self.bounds)

    def baseline_text(self, digits: int = 1) -> str:
        """Return the score of the baseline as text, or an empty string."""
        base = self.baseline.scores[self.metric] if self.baseline else None
        return "" if base is None else format_score(self.metric, base, digits)


def metric_label(name: str, run: RunFolder) -> str:
    """Return the full name of a metric for the task of a run."""
    return task_view(run).labels.get(name) or LABELS.get(name, name)


def format_score(name: str, value: float, digits: int = 1) -> str:
    """Return a score as text: `digits` decimals, or four significant digits if unbounded."""
    if name not in UNBOUNDED:
        return f"{value:.{digits}f}"
    if value and not 1e-3 <= abs(value) < 1e9:
        return f"{value:.3g}"
    decimals = 3 - math.floor(math.log10(abs(value))) if value else 3
    return f"{value:,.{max(decimals, 0)}f}"


def headline(run: RunFolder) -> Headline | None:
    """Return the final main score, otherwise the best validation so far, or None without scores."""
    final = [run.final] if record_scores(run.final) else []
    scored = final or [line for line in run.dev if record_scores(line)]
    if not scored:
        return None
    names = known_first(record_scores(scored[-1]))
    main = run.facts.get("metric")
    metric = str(main if main in names else names[0])
    measured = [line for line in scored if metric in record_scores(line)]
    latest_first = reversed(measured)  # training keeps the later of equal scores
    best = best_of(metric)(latest_first, key=lambda line: record_scores(line)[metric])
    examples = number(run.final.get("examples"))
    if not run.final:
        origin = f"best of {len(measured)} validations so far, at step {best.get('step', '?')}"
    else:
        origin = f"{examples:,.0f} dev examples" if examples is not None else "dev examples"
        origin = origin.removesuffix("s") if examples == 1 else origin
    step, bounds = number(best.get("step")), _bounds(best, metric)
    baseline = next((one for one in record_baselines(best) if metric in one.scores), None)
    return Headline(metric, record_scores(best)[metric], origin, step, bounds, baseline)


def scores_section(run: RunFolder, main: Headline | None) -> str:
    """Return the final scores, or those of the last validation if the run is not finished.

    Metrics that are not in use for the task are folded.
    """
    record = run.final if record_scores(run.final) else (run.dev[-1] if run.dev else {})
    scores = record_scores(record)
    if not scores or main is None:
        return ""
    usual = usual_metrics(main.metric, scores)
    names = known_first(usual)
    scale = "" if UNBOUNDED.issuperset(names) else "0 to 100"
    baselines = record_baselines(record)
    columns = ["score", "95 % interval", *(["baseline"] if baselines else [])]
    head = f"<th>metric</th>{cells(columns, 'th')}{cells([scale], 'th', 'strip')}"
    rows = {name: _row(run, record, name, name == main.metric) for name in known_first(scores)}
    found = table("scores", head, [rows[name] for name in names])
    if others := [row for name, row in rows.items() if name not in usual]:
        found += (
            f"<details><summary>Other metrics</summary>{table('scores', head, others)}</details>"
        )
    step = "" if run.final else f"At step {escape(str(record.get('step')))}."
    notes = _baselines_notes(baselines, main, record.get("baseline_notes"))
    return section("Scores", note(step), found, note(sentences(notes)))


def _baselines_notes(baselines: list[Baseline], main: Headline, notes: object) -> list[str]:
    """Return sentences that name the baselines, with their main score, and how they were fitted."""
    shown = [
        f"{one.name} ({format_score(main.metric, one.scores[main.metric], 2)})"
        if main.metric in one.scores
        else one.name
        for one in baselines
    ]
    lines = [f"Baseline: {', '.join(shown)}."] if shown else []
    return lines + ([f"Note: {line}." for line in notes] if isinstance(notes, list) else [])


def known_first(names: Collection[str]) -> list[str]:
    """Return the names in the order of `METRICS`, then unknown names."""
    known = [name for name in METRICS if name in names]
    return known + [name for name in names if name not in METRICS]


def _row(run: RunFolder, record: Record, name: str, is_main: bool) -> str:
    value, bounds = record_scores(record)[name], _bounds(record, name)
    best = next(iter(record_baselines(record)), None)
    base = best.scores.get(name) if best else None
    strip = "" if name in UNBOUNDED else score_strip(value, bounds, base)
    baseline = "" if base is None else format_score(name, base, 2)
    return (
        f'<tr{" class=main" if is_main else ""}><td title="{which_is_better(name)}">'
        f"{escape(metric_label(name, run))} "
        f'<span class="note" translate="no">{escape(name)}</span></td>'
        f"{cells([format_score(name, value, 2)])}"
        f'<td class="number note">{_interval(name, bounds)}</td>'
        f"{cells([baseline]) if best else ''}"
        f'<td class="strip">{strip}</td></tr>'
    )


def score_strip(
    value: float, bounds: tuple[float, float] | None = None, baseline: float | None = None
) -> str:
    """Return a small SVG scale from 0 to 100: the score is a tick, `bounds` are a bar.

    baseline: score of a baseline, a gray tick.
    """
    low, high = bounds or (value, value)
    low, high, at = (min(max(one, 0.0), 100.0) for one in (low, high, value))
    base = "" if baseline is None else _baseline_tick(min(max(baseline, 0.0), 100.0))
    return (
        '<svg viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="rail" y="5.5" width="100" height="1"/>{base}'
        f'<rect class="range" x="{low:.2f}" y="2" width="{high - low:.2f}" height="8"/>'
        f'<rect class="at" x="{at - 0.2:.2f}" y="0" width="0.4" height="12"/></svg>'
    )


def _baseline_tick(at: float) -> str:
    return f'<rect class="base" x="{at - 0.2:.2f}" y="1.5" width="0.4" height="9"/>'


def record_baselines(record: Record) -> list[Baseline]:
    """Return the readable baselines of a log record, the best one first."""
    rows = record.get("baselines")
    named = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    found = [Baseline(str(row.get("name")), record_scores(row)) for row in named]
    return [one for one in found if one.scores]


def record_scores(record: Record) -> dict[str, float]:
    """Return the finite scores of a log record."""
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
    return " to ".join(format_score(name, bound) for bound in bounds) if bounds else ""
