"""The list of `regard runs`: sorted runs with their differing settings, as text or JSON."""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from regard.metrics.metric_names import HIGHER_IS_BETTER
from regard.views.report.overview import RunSummary, differing_settings, find_runs, format_setting
from regard.views.report.score_table import format_score

DEFAULT = Path("runs")
GAP = 2  # spaces between columns
STYLES = {"finished": "green", "running": "cyan", "stopped": "yellow", "corrupted": "red"}
NUMBER_COLUMNS = {"step", "min", "params"}


@dataclass(frozen=True)
class RunRow:
    """The texts of one run in the list.

    cells: texts by column name. settings: values of settings that differ among runs with the same
    task and data. others: values of all settings in the list.
    """

    cells: dict[str, str]
    settings: dict[str, str]
    others: dict[str, str]


def row(
    run: RunSummary, differing: list[str], names: dict[str, str], base_folder: Path | None
) -> RunRow:
    """Return the texts of a run. differing: settings that differ from similar runs.

    names: short names of settings. base_folder: folder that is omitted from the path of the run.
    """
    relative = (
        run.folder if base_folder in (None, run.folder) else run.folder.relative_to(base_folder)
    )
    best, last, seconds, count = (
        run.best,
        run.most("step"),
        run.most("elapsed_seconds"),
        run.parameters,
    )
    steps = [step for step in (best.step if best else None, last) if step is not None]
    cells = {
        "run": printable(str(relative)),
        "task": run.task or "?",
        "data": printable(run.data) or "-",
        "state": run.state,
        "best": f"{printable(best.metric)} {format_score(best.metric, best.value, 2)}"
        if best
        else "-",
        "step": "-" if last is None else "/".join(f"{step:.0f}" for step in steps),
        "min": "-" if seconds is None else f"{seconds / 60:.1f}",
        "params": "-" if count is None else compact_number(count),
    }
    known = {
        key: printable(format_setting(run.settings[key])) for key in names if key in run.settings
    }
    settings = {names[key]: known[key] for key in differing}
    return RunRow(cells, settings, {names[key]: value for key, value in known.items()})


def compact_number(count: float) -> str:
    """Return a number with a suffix: 950, 437k, 1.73M."""
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{suffix}"
    return f"{count:g}"


def table(rows: Sequence[RunRow], width: int | None) -> list[Text]:
    """Return the lines of the table, at most `width` characters wide.

    Settings are columns if they fit, otherwise lines below each run. If even the other columns do
    not fit, each run is a block of several lines.
    """
    names = list(dict.fromkeys(name for row in rows for name in row.settings))
    main = list(rows[0].cells)
    wide = [{**row.cells, **{n: row.others.get(n, "-") for n in names}} for row in rows]
    cells = [row.cells for row in rows]
    if width is None or _width([*main, *names], wide) <= width:
        return _lines([*main, *names], wide)
    same = [n for n in ("task", "data") if len({row.cells[n] for row in rows}) == 1]
    out: list[Text] = []
    narrow = main if _width(main, cells) <= width else [name for name in main if name not in same]
    if _width(narrow, cells) > width:
        blocks = [_block(row, width) for row in rows]
    else:
        if narrow != main:
            out.append(Text("all: " + ", ".join(cells[0][name] for name in same), style="dim"))
        top, *single = _lines(narrow, cells)
        out.append(top)
        blocks = [[line] for line in single]
    for row, block in zip(rows, blocks, strict=True):
        settings = "  ".join(f"{name}={value}" for name, value in row.settings.items())
        below = textwrap.wrap(settings, width - 4, break_on_hyphens=False)
        out += [*block, *(Text(f"    {part}", style="dim") for part in below)]
    return out


def _block(row: RunRow, width: int) -> list[Text]:
    """Return a run as a block: its name, then all cells as wrapped text."""
    cells = row.cells
    words = [cells["task"], cells["data"], cells["state"], cells["best"], f"step {cells['step']}"]
    text = ", ".join([*words, f"{cells['min']} min", f"{cells['params']} parameters"])
    parts = textwrap.wrap(text, width - 2, break_on_hyphens=False)
    return [Text(cells["run"], style="bold"), *(Text(f"  {part}") for part in parts)]


def _width(names: Sequence[str], rows: Sequence[dict[str, str]]) -> int:
    return sum(_widths(names, rows)) + GAP * (len(names) - 1)


def _widths(names: Sequence[str], rows: Sequence[dict[str, str]]) -> list[int]:
    return [max(cell_len(name), *(cell_len(row[name]) for row in rows)) for name in names]


def _lines(names: Sequence[str], rows: Sequence[dict[str, str]]) -> list[Text]:
    """Return a header and one line per row."""
    widths = _widths(names, rows)
    lines: list[Text] = []
    for row in [{name: name for name in names}, *rows]:
        line = Text()
        for name, width in zip(names, widths, strict=True):
            space = " " * (width - cell_len(row[name]))
            style = STYLES.get(row[name], "") if name == "state" else ""
            gap = " " * GAP if line else ""
            line.append(gap + (space if name in NUMBER_COLUMNS else ""))
            line.append(row[name], style="dim" if not lines else style)
            line.append("" if name in NUMBER_COLUMNS else space)
        line.rstrip()
        lines.append(line)
    return lines


def printable(text: str) -> str:
    """Return the text with replacement characters for control characters."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def search_runs(folders: list[Path]) -> tuple[list[Path], list[Path]]:
    """Return all runs, each once, and the subfolders without runs. folders: default `runs`."""
    if not folders and not DEFAULT.exists():
        return [], []
    found: dict[Path, Path] = {}
    without_runs = []
    for folder in folders or [DEFAULT]:
        runs, others = find_runs(folder)
        for run in runs:
            found.setdefault(run.resolve(), run)
        without_runs += others
    return list(found.values()), without_runs


def settings_to_show(runs: Sequence[RunSummary]) -> dict[Path, list[str]]:
    """Return for each run the settings that differ among runs with the same task and data."""
    shown: dict[Path, list[str]] = {}
    for _, group in groupby(sorted(runs, key=_task_and_data), key=_task_and_data):
        similar = list(group)
        keys = differing_settings(similar)
        shown |= {run.folder: [key for key in keys if key in run.settings] for run in similar}
    return shown


def _task_and_data(run: RunSummary) -> tuple[str, str]:
    return run.task, run.data


def as_record(run: RunSummary, differing: list[str], names: dict[str, str]) -> dict[str, Any]:
    """Return a run for JSON; unknown values are None."""
    best = run.best
    return {
        "folder": str(run.folder),
        "task": run.task or None,
        "data": run.data or None,
        "state": run.state,
        "started": run.started.isoformat(timespec="seconds"),
        "metric": run.metric or None,
        "best": best.value if best else None,
        "interval": list(best.bounds) if best and best.bounds else None,
        "best_step": _round(best.step if best else None),
        "steps": _round(run.most("step")),
        "seconds": run.most("elapsed_seconds"),
        "parameters": _round(run.parameters),
        "tokens_per_second": run.speed,
        "settings": {names[key]: run.settings[key] for key in differing},
        "notes": run.notes,
    }


def _round(value: float | None) -> int | None:
    return None if value is None else round(value)


def _by_best(run: RunSummary) -> tuple[bool, str, float]:
    """Return a sort key: by metric, best score first; runs without a score last."""
    value = run.best.value if run.best else 0.0
    sign = -1 if HIGHER_IS_BETTER.get(run.metric, True) else 1
    return run.best is None, run.metric, sign * value


ORDERS: dict[str, Callable[[RunSummary], Any]] = {  # ties: the newest first
    "newest": lambda run: 0,
    "name": lambda run: str(run.folder),
    "best": _by_best,
    "minutes": lambda run: -(run.most("elapsed_seconds") or 0.0),
    "parameters": lambda run: -(run.parameters or 0.0),
}


def sort_runs(runs: list[RunSummary], order: str) -> list[RunSummary]:
    """Return the runs sorted. order: a key of `ORDERS`."""
    newest = sorted(runs, key=lambda run: run.started, reverse=True)
    return sorted(newest, key=ORDERS[order])
