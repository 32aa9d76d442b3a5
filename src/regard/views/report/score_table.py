"""The scores of a run: the main one for the top of the page, and a table of all."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from html import escape

from regard.metrics import HIGHER_IS_BETTER
from regard.storage.run_folder import Record, RunFolder, number

LABELS = {
    "exact": "exact match",
    "ser": "symbol error rate",
    "cer": "character error rate",
    "wer": "word error rate",
    "bleu": "BLEU",
    "chrf": "chrF",
    "bleu_d2l": "short-sentence BLEU",
    "accuracy": "accuracy",
    "f1": "F1",  # of labels or of spans: see `measure`
    "macro_f1": "macro F1",
    "unseen_accuracy": "accuracy on unseen words",
    "sentences": "whole sentences right",
    "subset_accuracy": "all labels right",
    "log_loss": "log loss (nats)",
    "ece": "calibration error",
    "r2": "R\u00b2",
    "rmse": "root mean squared error",
    "mae": "mean absolute error",
    "loss": "loss (nats)",
    "perplexity": "perplexity",
    "bits_per_character": "bits per character",
}
# Not on a scale from 0 to 100; every other measure is.
UNBOUNDED = {"log_loss", "r2", "rmse", "mae", "loss", "perplexity", "bits_per_character"}
SHARES = {"exact", "ser", "cer", "wer", "accuracy", "unseen_accuracy", "sentences"}
SHARES |= {"subset_accuracy", "ece"}


@dataclass(frozen=True)
class Headline:
    """The main score: its metric, its value, its interval, where it comes from and its step."""

    metric: str
    value: float
    interval: str
    origin: str
    step: float | None = None
    bounds: tuple[float, float] | None = None


def measure(name: str, run: RunFolder) -> str:
    """The name of a measure in words."""
    is_span = name == "f1" and run.facts.get("task") == "tag"
    return "span F1" if is_span else LABELS.get(name, name)


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
    scored = (
        [run.final]
        if record_scores(run.final)
        else [line for line in run.dev if record_scores(line)]
    )
    if not scored:
        return None
    wanted = run.facts.get("metric")
    known = [name for name in HIGHER_IS_BETTER if name in record_scores(scored[-1])]
    metric = str(
        wanted if wanted in record_scores(scored[-1]) else [*known, *record_scores(scored[-1])][0]
    )

    measured = [line for line in scored if metric in record_scores(line)]
    choose = max if HIGHER_IS_BETTER.get(metric, True) else min
    latest_first = reversed(measured)  # of equals training keeps the later one
    best = choose(latest_first, key=lambda line: record_scores(line)[metric])
    examples = number(run.final.get("examples"))
    if not run.final:
        origin = f"best of {len(measured)} validations so far, at step {best.get('step', '?')}"
    else:
        origin = f"{examples:,.0f} dev examples" if examples is not None else "dev examples"
        origin = origin.removesuffix("s") if examples == 1 else origin
    bounds, step = _bounds(best, metric), number(best.get("step"))
    return Headline(
        metric, record_scores(best)[metric], _interval(best, metric), origin, step, bounds
    )


def scores_section(run: RunFolder, main: Headline | None) -> str:
    """A table of all scores of the finished run, or of the last validation."""
    record = run.final if record_scores(run.final) else (run.dev[-1] if run.dev else {})
    scores = record_scores(record)
    if not scores or main is None:
        return ""
    names = known_first(scores)
    rows = "".join(_row(run, record, name, name == main.metric) for name in names)
    heads = '<th>measure</th><th class="number">score</th><th class="number">95 % interval</th>'
    scale = "" if UNBOUNDED.issuperset(names) else "0 to 100"
    note = "" if run.final else f'<p class="note">At step {escape(str(record.get("step")))}.</p>'
    return (
        f'<section><h2>Scores</h2>{note}<table class="scores"><thead><tr>{heads}'
        f'<th class="strip">{scale}</th></tr></thead>{rows}</table></section>'
    )


def known_first(names: Collection[str]) -> list[str]:
    """The measures that are known in their usual order, then the others."""
    known = [name for name in HIGHER_IS_BETTER if name in names]
    return known + [name for name in names if name not in HIGHER_IS_BETTER]


def _row(run: RunFolder, record: Record, name: str, is_main: bool) -> str:
    value, bounds = record_scores(record)[name], _bounds(record, name)
    better = "higher is better" if HIGHER_IS_BETTER.get(name, True) else "lower is better"
    strip = "" if name in UNBOUNDED else score_strip(value, bounds)
    return (
        f'<tr{" class=main" if is_main else ""}><td title="{better}">'
        f"{escape(measure(name, run))} "
        f'<span class="note">{escape(name)}</span></td>'
        f'<td class="number">{shown(name, value, 2)}</td>'
        f'<td class="number note">{_interval(record, name)}</td><td class="strip">{strip}</td></tr>'
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


def _interval(record: Record, name: str) -> str:
    bounds = _bounds(record, name)
    return " to ".join(shown(name, bound) for bound in bounds) if bounds else ""
