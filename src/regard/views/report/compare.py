"""The report that compares runs of one task: scores, curves, settings and predictions."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path

from regard.core.errors import UserError
from regard.core.formatting import duration
from regard.metrics.metric_names import best_of, which_is_better
from regard.storage.run_folder import points
from regard.views.report.curves import Scale, Series, plot_curves, run_label
from regard.views.report.html_parts import DASH, code, fill_page, note, section, table, write_page
from regard.views.report.overview import RunSummary, differing_settings, format_setting
from regard.views.report.samples import prediction_comparison
from regard.views.report.score_table import (
    format_score,
    known_first,
    metric_label,
    record_scores,
    score_strip,
    task_view,
)

STYLES = ("page.css", "compare.css")


def write_comparison(runs: Sequence[RunSummary], target: Path) -> Path:
    """Write the report that compares these runs and return its path.

    Raise UserError if the tasks or metrics of the runs differ.
    """
    _check_comparable(runs)
    names = _names(runs)
    data = sorted({run.data for run in runs if run.data})
    page = fill_page(
        title=f"Comparison of {len(runs)} runs",
        eyebrow="<span>regard: comparison of training runs</span>",
        name=f"{len(runs)} runs" + (f" of {escape(data[0])}" if len(data) == 1 else ""),
        command="",
        sections=[
            _warnings(runs, data),
            _best_section(runs, names),
            _curves_section(runs, names),
            _settings_section(runs, names),
            _scores_section(runs, names),
            prediction_comparison(runs, names),
        ],
        notes=[f"{run.folder}: {note}" for run in runs for note in run.notes],
        styles=STYLES,
    )
    return write_page(target, page)


def _names(runs: Sequence[RunSummary]) -> list[str]:
    """Return the folder name of each run, or its path if several runs have the same name."""
    ends = [run.folder.resolve().name for run in runs]
    count = Counter(ends)
    return [str(run.folder) if count[end] > 1 else end for run, end in zip(runs, ends, strict=True)]


def _check_comparable(runs: Sequence[RunSummary]) -> None:
    kinds = {(run.task, run.metric) for run in runs}
    if len(kinds) > 1:
        lines = [f"  {run.folder}: {run.task or '?'}, {run.metric or '?'}" for run in runs]
        raise UserError("\n".join(["cannot compare runs with different tasks or metrics:", *lines]))


def _warnings(runs: Sequence[RunSummary], data: list[str]) -> str:
    """Return warnings (HTML) about runs that are unfinished or have different data."""
    lines = []
    if len(data) > 1:
        lines.append(f"Trained on different data: {', '.join(data)}.")
    marks = [run.run.facts.get("fingerprints") or {} for run in runs]
    if len({str(mark.get("dev")) for mark in marks}) > 1:
        lines.append("Evaluated on different dev sets: scores are not directly comparable.")
    unfinished = [run for run in runs if run.state != "finished"]
    if unfinished:
        lines.append(
            f"{len(unfinished)} of {len(runs)} not finished: their best validation so far is "
            "shown instead of the final score."
        )
    return "".join(f'<p class="warning">{escape(line)}</p>' for line in lines)


def _best_section(runs: Sequence[RunSummary], names: list[str]) -> str:
    """Return a table of the main score of each run, with interval, training time and size."""
    found = [run.best for run in runs if run.best]
    metric = runs[0].metric
    ends = [end for best in found for end in best.ends]
    scale = Scale(min(ends), max(ends), 0, 100) if len(set(ends)) > 1 else None
    span = (
        f"{format_score(metric, min(ends))} to {format_score(metric, max(ends))}" if scale else ""
    )
    top = best_of(metric)((best.value for best in found), default=None)
    omitted = set() if any(best.baseline for best in found) else {"baseline"}
    rows = []
    for index, (run, name) in enumerate(zip(runs, names, strict=True)):
        kind = ' class="main"' if run.best and run.best.value == top else ""
        inside = "".join(
            f'<td class="{style}" data-label="{escape(label)}">{text or DASH}</td>'
            for style, label, text in _cells(run, scale)
            if label not in omitted
        )
        rows.append(f'<tr{kind}><th scope="row">{run_label(index, name)}</th>{inside}</tr>')
    head = "".join(
        f'<th class="{style}" scope="col">{escape(span if style == "strip" else label)}</th>'
        for style, label, _ in _cells(runs[0], scale)
        if label not in omitted
    )
    rows = ["<tbody>", *rows, "</tbody>"]
    return section(
        "Best models",
        note(f"On the dev set; {which_is_better(metric)}."),
        table("runs", f'<th scope="col">run</th>{head}', rows),
    )


def _cells(run: RunSummary, scale: Scale | None) -> list[tuple[str, str, str]]:
    """Return CSS class, label and content (HTML) of each table cell of a run.

    scale: maps scores to the range from 0 to 100.
    """
    best = run.best
    value = strip = ""
    if best:
        value, (low, high) = format_score(best.metric, best.value, 2), best.ends
        strip = score_strip(scale(best.value), (scale(low), scale(high))) if scale else ""
    return [
        ("number value", metric_label(run.metric, run.run), value),
        ("number", "95 % interval", best.interval if best else ""),
        ("strip", "", strip),
        ("number", "baseline", best.baseline_text(2) if best else ""),
        ("number", "best step", _count(best.step if best else None)),
        ("number", "steps", _count(run.most("step"))),
        ("number", "time", duration(run.most("elapsed_seconds") or 0.0)),
        ("number", "parameters", _count(run.parameters)),
        ("number", "tokens/s", _count(run.speed)),
        ("state", "state", f'<span class="{run.state}">{run.state}</span>'),
    ]


def _count(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _curves_section(runs: Sequence[RunSummary], names: list[str]) -> str:
    """Return one plot per curve, with a line per run, by step and by minute."""
    by_step, by_minute = (_figures(runs, names, axis) for axis in ("step", "minute"))
    if not by_step:
        return ""
    legend = "".join(f"<li>{run_label(index, name)}</li>" for index, name in enumerate(names))
    choice = "".join(
        f'<label><input type="radio" name="over" value="{axis}"{checked}> {axis}s</label>'
        for axis, checked in (("step", " checked"), ("minute", ""))
    )
    return (
        '<section class="over"><h2>Training</h2>'
        f'<fieldset class="choice"><legend>x axis</legend>{choice}</fieldset>'
        f'<ul class="names">{legend}</ul>'
        f'<div class="curves by-step">{by_step}</div>'
        f'<div class="curves by-minute">{by_minute}</div></section>'
    )


def _figures(runs: Sequence[RunSummary], names: list[str], axis: str) -> str:
    metric, loss = runs[0].metric, task_view(runs[0].run).loss
    label = metric_label(metric, runs[0].run)
    title = f"{label[:1].upper()}{label[1:]} (dev)"
    curves = [
        (title, "dev", ("scores", metric), which_is_better(metric)),
        (f"{loss}, dev", "dev", ("loss",), "lower is better"),
        (f"{loss}, train", "train", ("loss",), "lower is better"),
        ("Learning rate", "train", ("lr",), " "),
    ]
    figures = []
    for title, part, path, better in curves:
        series = []
        for run, name in zip(runs, names, strict=True):
            records = run.run.dev if part == "dev" else run.run.train
            if axis == "minute":
                timed = points(records, *path, over="elapsed_seconds")
                series.append(Series(name, [(round(x / 60, 4), y) for x, y in timed]))
            else:
                series.append(Series(name, points(records, *path)))
        figures.append(
            plot_curves(title, series, note=better, from_zero=part == "train", axis=axis)
        )
    return "".join(f'<div class="wide">{figure}</div>' for figure in figures if figure)


def _settings_section(runs: Sequence[RunSummary], names: list[str]) -> str:
    """Return a table with one row per differing setting and one column per run."""
    keys = differing_settings(runs)
    if not keys:
        return section("Settings", note("All settings are the same."))
    rows = []
    for key in keys:
        values = [
            escape(format_setting(r.settings[key])) if key in r.settings else DASH for r in runs
        ]
        inside = "".join(f"<td><code>{value}</code></td>" for value in values)
        rows.append(f'<tr><th scope="row">{code(key)}</th>{inside}</tr>')
    return section("Settings that differ", _side_by_side(rows, names))


def _scores_section(runs: Sequence[RunSummary], names: list[str]) -> str:
    """Return a table with one row per metric and one column per run, best scores in bold."""
    scores = [record_scores(run.run.final or (run.run.dev or [{}])[-1]) for run in runs]
    rows = []
    for name in known_first({name for found in scores for name in found}):
        values = [found.get(name) for found in scores]
        known = {value for value in values if value is not None}
        top = best_of(name)(known) if len(known) > 1 else None
        found = "".join(
            f'<td class="number{" winner" if value is not None and value == top else ""}">'
            f"{format_score(name, value, 2) if value is not None else DASH}</td>"
            for value in values
        )
        label = f"{escape(metric_label(name, runs[0].run))} {_identifier(name)}"
        title = which_is_better(name)
        rows.append(f'<tr><th scope="row" title="{title}">{label}</th>{found}</tr>')
    if not rows:
        return ""
    text = "The best model on the full dev set; for unfinished runs, the last validation."
    return section("Scores", note(text), _side_by_side(rows, names, "number"))


def _identifier(name: str) -> str:
    return f'<span class="note" translate="no">{escape(name)}</span>'


def _side_by_side(rows: list[str], names: list[str], style: str = "") -> str:
    heads = "".join(
        f'<th scope="col" class="{style}">{run_label(index, name)}</th>'
        for index, name in enumerate(names)
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="comparison">'
        f"{table('comparison', f'<td></td>{heads}', ['<tbody>', *rows, '</tbody>'])}</div>"
    )
