"""The page: reads a run folder, fills the template and writes `report.html` beside the data."""

import json
from html import escape
from pathlib import Path
from typing import Any

from regard.core.formatting import duration
from regard.metrics import HIGHER_IS_BETTER
from regard.storage.run_folder import Record, RunFolder, number, points, read_folder
from regard.views.report.curves import Point, Series, draw
from regard.views.report.diagnosis import diagnosis_section
from regard.views.report.label_report import details_section
from regard.views.report.samples import samples_section
from regard.views.report.score_table import (
    LABELS,
    SHARES,
    Headline,
    headline,
    measure,
    scores_section,
    shown,
)
from regard.views.report.template import fill_page, write_page
from regard.views.report.zipf import COUNTS, zipf_section

_SMALL = (320, 170)
LOSSES = {"classify": "Loss, nats per example", "regress": "Loss"}  # by task


def write_report(folder: Path, target: Path | None = None) -> Path:
    """The path of `report.html`, or of `target`, written anew from what the run folder holds."""
    folder = Path(folder)
    run = read_folder(folder)
    main = headline(run)
    name = str(run.facts.get("name") or folder.resolve().name)
    sections = [
        _top(run, main),
        _curves(run, main),
        diagnosis_section(run.diagnosis),
        scores_section(run, main),
        details_section(run.final.get("details") or {}),
        samples_section(run.samples, str(run.facts.get("task", ""))),
        _check(run.check),
        zipf_section(run.check),
        _settings(run.settings),
        _config(run.config),
    ]
    page = fill_page(
        title=f"{name}: report",
        eyebrow=_eyebrow(run),
        name=name,
        command=_command(run.facts),
        sections=sections,
        notes=_footnotes(run),
    )
    return write_page(target or folder / "report.html", page)


def _eyebrow(run: RunFolder) -> str:
    parts = ["<span>A training run of regard</span>"]
    if run.facts.get("started"):
        parts.append(escape(str(run.facts["started"])))
    if not run.final:
        parts.append('<span class="state">not finished</span>')
    return " &middot; ".join(parts)


def _command(facts: Record) -> str:
    command = facts.get("command")
    if not command:
        return ""
    text = " ".join(map(str, command)) if isinstance(command, list) else str(command)
    return f'<p class="command"><code>{escape(text)}</code></p>'


def _top(run: RunFolder, main: Headline | None) -> str:
    if main:
        sign = "<small>%</small>" if main.metric in SHARES else ""
        interval = f"95 % interval {main.interval}, " if main.interval else ""
        score = (
            f'<span class="label">{escape(measure(main.metric, run))}</span>'
            f'<span class="value">{shown(main.metric, main.value)}{sign}</span>'
            f'<span class="note">{interval}{escape(main.origin)}</span>'
        )
    else:
        score = '<span class="label">no score yet</span><span class="value">&ndash;</span>'
    facts = "".join(
        f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>"
        for label, value in _facts(run)
    )
    return (
        f'<section class="top"><p class="headline">{score}</p>'
        f'<dl class="facts">{facts}</dl></section>'
    )


def _facts(run: RunFolder) -> list[tuple[str, str]]:
    """Labels and values for the top of the page; what is not known is left out."""
    records = [*run.train, *run.dev, run.final]
    steps = [step for record in records if (step := number(record.get("step"))) is not None]
    seconds = [time for record in records if (time := number(record.get("seconds"))) is not None]
    epochs = [epoch for record in run.train if (epoch := number(record.get("epoch"))) is not None]
    padding = [
        share for record in run.train if (share := number(record.get("padding"))) is not None
    ]
    parameters = number(run.facts.get("parameters"))
    found: list[tuple[str, str | None]] = [
        ("parameters", f"{parameters:,.0f}" if parameters is not None else None),
        ("time", duration(max(seconds)) if seconds else None),
        ("steps", f"{max(steps):,.0f}" if steps else None),
        ("epochs", f"{max(epochs):.1f}" if epochs else None),
        ("padding", f"{100 * sum(padding) / len(padding):.1f} %" if padding else None),
        ("device", str(run.facts.get("device") or "") or None),
        ("version", str(run.facts.get("version") or "") or None),
    ]
    return [(label, value) for label, value in found if value is not None]


def _curves(run: RunFolder, main: Headline | None) -> str:
    if len(run.train) == len(run.dev) == 1 and run.dev[0].get("step") == 1:
        return ""  # solved by a formula, in one step
    losses = [Series("train", points(run.train, "loss")), Series("dev", points(run.dev, "loss"))]
    figures = [_wide(draw(LOSSES.get(str(run.facts.get("task")), "Loss, nats per symbol"), losses))]
    if main:
        label = measure(main.metric, run)
        measured = points(run.dev, "scores", main.metric)
        best = _best(measured, main.metric)
        note = f"best {shown(main.metric, best[1])} at step {best[0]:,.0f}" if best else ""
        title = label[0].upper() + label[1:] + " on dev"
        figure = draw(title, [Series(label, measured)], mark=best, note=note, from_zero=False)
        figures.append(_wide(figure))
    for title, key in [
        ("Learning rate", "lr"),
        ("Gradient norm", "norm"),
        ("Tokens per second", "tokens_per_second"),
    ]:
        figures.append(draw(title, [Series(title.lower(), points(run.train, key))], size=_SMALL))
    drawn = "".join(filter(None, figures))
    return f'<section><h2>Training</h2><div class="curves">{drawn}</div></section>' if drawn else ""


def _wide(figure: str) -> str:
    return f'<div class="wide">{figure}</div>' if figure else ""


def _best(measured: list[Point], metric: str) -> Point | None:
    choose = max if HIGHER_IS_BETTER.get(metric, True) else min
    latest_first = reversed(measured)  # of equals training keeps the later one
    return choose(latest_first, key=lambda point: point[1], default=None)


def _check(check: Record) -> str:
    if not check:
        return ""
    lines = check.get("lines")
    text = "\n".join(map(str, lines)) if isinstance(lines, list) else _plain(_without_counts(check))
    return f'<section class="data"><h2>Data</h2><pre>{escape(text)}</pre></section>'


def _without_counts(check: Record) -> Record:
    return {key: value for key, value in check.items() if key not in COUNTS}


def _settings(settings: Record) -> str:
    changed, chosen = settings.get("changed") or {}, settings.get("chosen") or []
    parts = []
    if changed:
        rows = "".join(
            f"<tr><td><code>{escape(key)}</code></td><td><code>{escape(_plain(value))}</code></td>"
            f'<td class="why">instead of <code>{escape(_plain(default))}</code></td></tr>'
            for key, (default, value) in changed.items()
        )
        parts.append(f'<h3>Changed from the defaults</h3><table class="settings">{rows}</table>')
    if chosen:
        rows = "".join(
            f"<tr><td><code>{escape(str(choice.get('key')))}</code></td>"
            f"<td><code>{escape(_plain(choice.get('value')))}</code></td>"
            f'<td class="why">{escape(str(choice.get("why", "")))}</td></tr>'
            for choice in chosen
        )
        parts.append(f'<h3>Chosen from the data</h3><table class="settings">{rows}</table>')
    return f"<section><h2>Settings</h2>{''.join(parts)}</section>" if parts else ""


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=1 if isinstance(value, dict) else None)


def _config(config: str) -> str:
    if not config.strip():
        return ""
    summary = "<summary>The whole configuration</summary>"
    return (
        f'<section><details>{summary}<pre tabindex="0">{escape(config)}</pre></details></section>'
    )


def _footnotes(run: RunFolder) -> list[str]:
    signatures = run.final.get("signatures") or {}
    lines = [f"{LABELS.get(name, name)}: sacrebleu {text}" for name, text in signatures.items()]
    return [*lines, *run.notes]
