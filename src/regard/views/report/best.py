"""Runs by name and colour, and their main scores beside each other."""

from collections import Counter
from collections.abc import Sequence
from html import escape

from regard.core.formatting import duration
from regard.metrics.metric_names import best_of, which_is_better
from regard.views.report.curves import Scale, line_style
from regard.views.report.html_parts import DASH, note, section, table
from regard.views.report.overview import Summary
from regard.views.report.score_table import Headline, measure, score_strip, shown

Cell = tuple[str, str, str]  # class, label and content, which is HTML


def run_names(runs: Sequence[Summary]) -> list[str]:
    """A name for each run: of its folder, or the whole path where two are called alike."""
    ends = [run.folder.resolve().name for run in runs]
    count = Counter(ends)
    return [str(run.folder) if count[end] > 1 else end for run, end in zip(runs, ends, strict=True)]


def run_label(place: int, name: str) -> str:
    """A run's colour and name."""
    return f'<i class="swatch {line_style(place)}"></i>{escape(name)}'


def best_section(runs: Sequence[Summary], names: list[str]) -> str:
    """The main score of each run with its interval, and what the run took."""
    found = [run.best for run in runs if run.best]
    metric = runs[0].metric
    ends = [end for best in found for end in (best.bounds or (best.value, best.value))]
    scale = Scale(min(ends), max(ends), 0, 100) if len(set(ends)) > 1 else None
    span = f"{shown(metric, min(ends))} to {shown(metric, max(ends))}" if scale else ""
    top = best_of(metric)((best.value for best in found), default=None)
    rows = []
    for place, (run, name) in enumerate(zip(runs, names, strict=True)):
        kind = ' class="main"' if run.best and run.best.value == top else ""
        inside = "".join(
            f'<td class="{style}" data-label="{escape(label)}">{text or DASH}</td>'
            for style, label, text in _cells(run, scale)
        )
        rows.append(f'<tr{kind}><th scope="row">{run_label(place, name)}</th>{inside}</tr>')
    head = "".join(
        f'<th class="{style}" scope="col">{escape(span if style == "strip" else label)}</th>'
        for style, label, _ in _cells(runs[0], scale)
    )
    rows = ["<tbody>", *rows, "</tbody>"]
    return section(
        "Best models",
        note(f"On the dev part; {which_is_better(metric)}."),
        table("runs", f'<th scope="col">run</th>{head}', rows),
    )


def _cells(run: Summary, scale: Scale | None) -> list[Cell]:
    best = run.best
    value = shown(best.metric, best.value, 2) if best else ""
    return [
        ("number value", measure(run.metric, run.run), value),
        ("number", "95 % interval", best.interval if best else ""),
        ("strip", "", _strip(best, scale)),
        ("number", "best step", _count(best.step if best else None)),
        ("number", "steps", _count(run.most("step"))),
        ("number", "time", duration(run.most("seconds") or 0.0)),
        ("number", "parameters", _count(run.parameters)),
        ("number", "tokens/s", _count(run.speed)),
        ("state", "state", f'<span class="{run.state}">{run.state}</span>'),
    ]


def _strip(best: Headline | None, scale: Scale | None) -> str:
    if best is None or scale is None:
        return ""
    low, high = best.bounds or (best.value, best.value)
    return score_strip(scale(best.value), (scale(low), scale(high)))


def _count(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"
