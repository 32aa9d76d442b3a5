"""One page about several runs of a task: scores, curves on the same axes, settings, samples."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path

from regard.core.errors import UserError
from regard.core.formatting import duration
from regard.metrics.metric_names import best_of, which_is_better
from regard.storage.run_folder import points
from regard.views.report.curves import Scale, Series, draw, run_label
from regard.views.report.html_parts import DASH, code, fill_page, note, section, table, write_page
from regard.views.report.overview import Summary, differing, plain
from regard.views.report.samples import answers_section
from regard.views.report.score_table import (
    known_first,
    measure,
    record_scores,
    score_strip,
    shown,
    task_view,
)

STYLES = ("page.css", "compare.css")


def write_comparison(runs: Sequence[Summary], target: Path) -> Path:
    """The path of the page that compares these runs; refused where they have no common measure."""
    _refuse_mixtures(runs)
    names = _names(runs)
    data = sorted({run.data for run in runs if run.data})
    page = fill_page(
        title=f"{len(runs)} runs compared",
        eyebrow="<span>A comparison of training runs of regard</span>",
        name=f"{len(runs)} runs" + (f" of {data[0]}" if len(data) == 1 else ""),
        command="",
        sections=[
            _warnings(runs, data),
            _best_section(runs, names),
            _curves_section(runs, names),
            _settings_section(runs, names),
            _scores_section(runs, names),
            answers_section(runs, names),
        ],
        notes=[f"{run.folder}: {note}" for run in runs for note in run.notes],
        styles=STYLES,
    )
    return write_page(target, page)


def _names(runs: Sequence[Summary]) -> list[str]:
    """A name for each run: of its folder, or the whole path where two are called alike."""
    ends = [run.folder.resolve().name for run in runs]
    count = Counter(ends)
    return [str(run.folder) if count[end] > 1 else end for run, end in zip(runs, ends, strict=True)]


def _refuse_mixtures(runs: Sequence[Summary]) -> None:
    kinds = {(run.task, run.metric) for run in runs}
    if len(kinds) > 1:
        lines = [f"  {run.folder}: {run.task or '?'}, {run.metric or '?'}" for run in runs]
        raise UserError(
            "\n".join(["only runs of one task and one measure can be compared; given were", *lines])
        )


def _warnings(runs: Sequence[Summary], data: list[str]) -> str:
    """What makes the scores hard to compare."""
    lines = []
    if len(data) > 1:
        lines.append(f"Trained on different data: {', '.join(data)}.")
    marks = [run.run.facts.get("fingerprints") or {} for run in runs]
    if len({str(mark.get("dev")) for mark in marks}) > 1:
        lines.append("Measured on different dev parts: compare the scores with care.")
    unfinished = [run for run in runs if run.state != "finished"]
    if unfinished:
        lines.append(
            f"{len(unfinished)} of {len(runs)} not finished: the best validation so far stands "
            "for the final score."
        )
    return "".join(f'<p class="warning">{escape(line)}</p>' for line in lines)


def _best_section(runs: Sequence[Summary], names: list[str]) -> str:
    """The main score of each run with its interval, and what the run took."""
    found = [run.best for run in runs if run.best]
    metric = runs[0].metric
    ends = [end for best in found for end in best.ends]
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


def _cells(run: Summary, scale: Scale | None) -> list[tuple[str, str, str]]:
    """Class, label and content of each cell, which is HTML."""
    best = run.best
    value = strip = ""
    if best:
        value, (low, high) = shown(best.metric, best.value, 2), best.ends
        strip = score_strip(scale(best.value), (scale(low), scale(high))) if scale else ""
    return [
        ("number value", measure(run.metric, run.run), value),
        ("number", "95 % interval", best.interval if best else ""),
        ("strip", "", strip),
        ("number", "best step", _count(best.step if best else None)),
        ("number", "steps", _count(run.most("step"))),
        ("number", "time", duration(run.most("elapsed_seconds") or 0.0)),
        ("number", "parameters", _count(run.parameters)),
        ("number", "tokens/s", _count(run.speed)),
        ("state", "state", f'<span class="{run.state}">{run.state}</span>'),
    ]


def _count(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _curves_section(runs: Sequence[Summary], names: list[str]) -> str:
    """Each curve of all runs on the same axes, by step and by minute."""
    by_step, by_minute = (_figures(runs, names, axis) for axis in ("step", "minute"))
    if not by_step:
        return ""
    legend = "".join(f"<li>{run_label(place, name)}</li>" for place, name in enumerate(names))
    choice = "".join(
        f'<label><input type="radio" name="over" value="{axis}"{checked}> {axis}s</label>'
        for axis, checked in (("step", " checked"), ("minute", ""))
    )
    return (
        '<section class="over"><h2>Training</h2>'
        f'<fieldset class="choice"><legend>over</legend>{choice}</fieldset>'
        f'<ul class="names">{legend}</ul>'
        f'<div class="curves by-step">{by_step}</div>'
        f'<div class="curves by-minute">{by_minute}</div></section>'
    )


def _figures(runs: Sequence[Summary], names: list[str], axis: str) -> str:
    metric, loss = runs[0].metric, task_view(runs[0].run).loss
    label = measure(metric, runs[0].run)
    title = f"{label[:1].upper()}{label[1:]} on dev"
    wanted = [
        (title, "dev", ("scores", metric), which_is_better(metric)),
        (f"{loss}, on dev", "dev", ("loss",), "lower is better"),
        (f"{loss}, in training", "train", ("loss",), "lower is better"),
        ("Learning rate", "train", ("lr",), " "),
    ]
    drawn = []
    for title, part, path, better in wanted:
        series = []
        for run, name in zip(runs, names, strict=True):
            records = run.run.dev if part == "dev" else run.run.train
            if axis == "minute":
                timed = points(records, *path, over="elapsed_seconds")
                series.append(Series(name, [(round(x / 60, 4), y) for x, y in timed]))
            else:
                series.append(Series(name, points(records, *path)))
        drawn.append(draw(title, series, note=better, from_zero=part == "train", axis=axis))
    return "".join(f'<div class="wide">{figure}</div>' for figure in drawn if figure)


def _settings_section(runs: Sequence[Summary], names: list[str]) -> str:
    """A row for each setting that differs, a column for each run."""
    keys = differing(runs)
    if not keys:
        return section("Settings", note("All settings are the same."))
    rows = []
    for key in keys:
        values = [escape(plain(r.settings[key])) if key in r.settings else DASH for r in runs]
        inside = "".join(f"<td><code>{value}</code></td>" for value in values)
        rows.append(f'<tr><th scope="row">{code(key)}</th>{inside}</tr>')
    return section("Settings that differ", _side_by_side(rows, names))


def _scores_section(runs: Sequence[Summary], names: list[str]) -> str:
    """A row for each measure, a column for each run, the best one bold."""
    scores = [record_scores(run.run.final or (run.run.dev or [{}])[-1]) for run in runs]
    rows = []
    for name in known_first({name for found in scores for name in found}):
        values = [found.get(name) for found in scores]
        there = {value for value in values if value is not None}
        top = best_of(name)(there) if len(there) > 1 else None
        found = "".join(
            f'<td class="number{" winner" if value is not None and value == top else ""}">'
            f"{shown(name, value, 2) if value is not None else DASH}</td>"
            for value in values
        )
        label = f"{escape(measure(name, runs[0].run))} <span class=note>{escape(name)}</span>"
        title = which_is_better(name)
        rows.append(f'<tr><th scope="row" title="{title}">{label}</th>{found}</tr>')
    if not rows:
        return ""
    said = "Of the best model on the whole dev part; of a run that is not finished, of its last "
    return section("Scores", note(said + "validation."), _side_by_side(rows, names, "number"))


def _side_by_side(rows: list[str], names: list[str], style: str = "") -> str:
    heads = "".join(
        f'<th scope="col" class="{style}">{run_label(place, name)}</th>'
        for place, name in enumerate(names)
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="beside each other">'
        f"{table('beside', f'<td></td>{heads}', ['<tbody>', *rows, '</tbody>'])}</div>"
    )
