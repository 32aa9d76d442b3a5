"""The HTML report of a run: `report.html` in the run folder."""

import re
from collections.abc import Callable
from html import escape
from pathlib import Path

from regard.core.formatting import duration
from regard.metrics.metric_names import LABELS, METRICS, best_of
from regard.storage.run_folder import Record, RunFolder, number, numbers, points, read_folder
from regard.views.report.curves import Series, plot_curves
from regard.views.report.html_parts import (
    code,
    fill_page,
    note,
    section,
    unless_corrupted,
    write_page,
)
from regard.views.report.label_report import details_section
from regard.views.report.objective_curves import disagreement, loss_figures, objective_figures
from regard.views.report.samples import samples_section
from regard.views.report.score_table import (
    Headline,
    format_score,
    headline,
    metric_label,
    scores_section,
    task_view,
)
from regard.views.report.setup_sections import check_section, diagnosis_section, settings_section
from regard.views.report.zipf import zipf_section

_SMALL = (320, 170)


def write_report(folder: Path, target: Path | None = None) -> Path:
    """Write the report of a run folder and return its path.

    target: output file (default: `report.html` in the run folder).
    """
    folder = Path(folder)
    run = read_folder(folder)
    main = headline(run)
    name = str(run.facts.get("name") or folder.resolve().name)
    command = run.facts.get("command") or ""
    command = " ".join(map(str, command)) if isinstance(command, list) else command
    used = run.final.get("signatures")
    used = used if isinstance(used, dict) else {}
    signatures = [f"{LABELS.get(name, name)}: sacrebleu {text}" for name, text in used.items()]
    parts: dict[str, Callable[[], str]] = {
        "run.json": lambda: _top(run, main),
        "the curves": lambda: _curves(run, main),
        "diagnosis.json": lambda: diagnosis_section(run.diagnosis),
        "the scores": lambda: scores_section(run, main),
        "config.yaml": lambda: _smoothing(run),
        "the details": lambda: details_section(run.final.get("details") or {}),
        "samples.jsonl": lambda: samples_section(run.samples, task_view(run).marked),
        "check.json": lambda: check_section(run.check),
        "the counts in check.json": lambda: zipf_section(run.check),
        "settings.json": lambda: settings_section(run.settings, run.config),
        "the configuration": lambda: _config(run.config),
    }
    sections = [unless_corrupted(name, make, run.notes) for name, make in parts.items()]
    page = fill_page(
        title=f"{name}: report",
        eyebrow=_eyebrow(run),
        name=f'<span translate="no">{escape(name)}</span>',
        command=f'<p class="command">{code(command)}</p>' if command else "",
        sections=sections,
        notes=[*signatures, *run.notes],
    )
    return write_page(target or folder / "report.html", page)


def _eyebrow(run: RunFolder) -> str:
    parts = ["<span>regard: training run</span>"]
    if run.facts.get("started"):
        parts.append(escape(str(run.facts["started"])))
    if not run.final:
        parts.append('<span class="state">not finished</span>')
    return " &middot; ".join(parts)


def _top(run: RunFolder, main: Headline | None) -> str:
    if main:
        known = METRICS.get(main.metric)
        sign = "<small>%</small>" if known and known.is_percentage else ""
        interval = f"<span>95 % interval {main.interval}</span>, " if main.interval else ""
        base = main.baseline
        compared = f"baseline {main.baseline_text()} ({base.name})" if base else ""
        baseline = f"; <span>{escape(compared)}</span>" if base else ""
        score = (
            f'<span class="label">{escape(metric_label(main.metric, run))}</span>'
            f'<span class="value">{format_score(main.metric, main.value)}{sign}</span>'
            f'<span class="note">{interval}<span>{escape(main.origin)}</span>{baseline}</span>'
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


def _smoothing(run: RunFolder) -> str:
    """Return a note on probabilities, if a model that writes sequences had smoothed targets."""
    found = re.search(r"\blabel_smoothing: ([\d.]+)", run.config)
    rate = float(found[1]) if found else 0.0
    if not rate or "perplexity" not in run.final.get("scores", {}):
        return ""
    text = "Label smoothing lowers all probabilities: its targets give the correct token at most"
    return note(f"{text} {100 - 100 * rate:g} %.")


def _facts(run: RunFolder) -> list[tuple[str, str]]:
    """Return labels and values for the top of the report; unknown values are omitted."""
    steps, seconds, count = (
        run.most("step"),
        run.most("elapsed_seconds"),
        run.facts.get("parameters"),
    )
    epochs, padding = numbers(run.train, "epoch"), numbers(run.train, "padding_fraction")
    found: list[tuple[str, str | None]] = [
        ("parameters", f"{count:,.0f}" if number(count) is not None else None),
        ("time", duration(seconds) if seconds is not None else None),
        ("steps", f"{steps:,.0f}" if steps is not None else None),
        ("epochs", f"{max(epochs):.1f}" if epochs else None),
        ("padding", f"{100 * sum(padding) / len(padding):.1f} %" if padding else None),
        ("device", str(run.facts.get("device") or "") or None),
        ("version", str(run.facts.get("version") or "") or None),
    ]
    return [(label, value) for label, value in found if value is not None]


def _curves(run: RunFolder, main: Headline | None) -> str:
    if len(run.train) == len(run.dev) == 1 and run.dev[0].get("step") == 1:
        return ""  # a closed-form solution has only one step
    figures = [_wide(plot_curves(*one)) for one in loss_figures(run, task_view(run).loss)]
    text = ""
    if main:
        label = metric_label(main.metric, run)
        measured = points(run.dev, "scores", main.metric)
        mark, text = _marked(measured, main.metric, run.final)
        title = label[0].upper() + label[1:] + " (dev)"
        lines = [Series(label, measured)]
        figures.append(_wide(plot_curves(title, lines, mark=mark, note=text, from_zero=False)))
        text = disagreement(run, main.metric, label)
    figures += objective_figures(run)
    for title, key in [
        ("Learning rate", "lr"),
        ("Gradient norm", "grad_norm"),
        ("Tokens per second", "tokens_per_second"),
    ]:
        figures.append(
            plot_curves(title, [Series(title.lower(), points(run.train, key))], size=_SMALL)
        )
    curves = "".join(figures)
    return section("Training", f'<div class="curves">{curves}</div>{text}' if curves else "")


def _marked(
    measured: list[tuple[float, float]], metric: str, final: Record
) -> tuple[tuple[float, float] | None, str]:
    """Return the validation of the saved model, and a note on it.

    It is the best one, unless a finished run kept a later model with a similar score.
    """
    latest_first = measured[::-1]  # training keeps the later of equal scores
    best = best_of(metric)(latest_first, key=lambda point: point[1], default=None)
    saved = next((point for point in latest_first if point[0] == final.get("step")), best)
    if saved is None:
        return None, ""
    word = "best" if saved == best else "kept"
    return saved, f"{word} {format_score(metric, saved[1])} at step {saved[0]:,.0f}"


def _wide(figure: str) -> str:
    return f'<div class="wide">{figure}</div>' if figure else ""


def _config(config: str) -> str:
    if not config.strip():
        return ""
    summary = "<summary>Complete configuration</summary>"
    return (
        f'<section><details>{summary}<pre tabindex="0">{escape(config)}</pre></details></section>'
    )
