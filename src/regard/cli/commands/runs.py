"""What `regard runs` does: a table of runs, as wide as the terminal."""

import json
import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console

from regard.core.errors import UserError, say
from regard.metrics.metric_names import HIGHER_IS_BETTER
from regard.views.report.overview import Summary, differing, find_runs, short_names, summarise
from regard.views.report.run_table import RunRow, printable, row, table

DEFAULT = Path("runs")


def runs_command(folders: list[Path], sort: str, json_object: bool) -> None:
    """Lists the runs in some folders."""
    if sort not in ORDERS:
        raise UserError(f"--sort {sort}: {', '.join(ORDERS)} expected")
    found, strange = _search(folders)
    runs = ORDERS[sort]([summarise(folder) for folder in found])
    apart = _settings_apart(runs)
    keys = list(dict.fromkeys(key for run in runs for key in apart[run.folder]))
    names = short_names(keys, [key for run in runs for key in run.settings])
    if json_object:
        listed = [as_record(run, apart[run.folder], names) for run in runs]
        record = {"runs": listed, "without_runs": [str(folder) for folder in strange]}
        print(json.dumps(record, ensure_ascii=False, allow_nan=False))
        return
    for run in runs:
        for note in run.notes:
            say(f"{printable(str(run.folder))}: {note}")
    for folder in strange:
        say(f"{printable(str(folder))}: no run in it, left out")
    if not runs:
        where = ", ".join(map(str, folders or [DEFAULT]))
        say(f"no runs in {printable(where)}; make one: regard train reverse --steps 200")
        return
    inside = (folders or [DEFAULT])[0] if len(folders) < 2 else None
    _print([row(run, apart[run.folder], names, inside) for run in runs])


def as_record(run: Summary, apart: list[str], names: dict[str, str]) -> dict[str, Any]:
    """A run for programs: numbers as they are, None for what is not known."""
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
        "best_step": _whole(best.step if best else None),
        "steps": _whole(run.most("step")),
        "seconds": run.most("seconds"),
        "parameters": _whole(run.parameters),
        "tokens_per_second": run.speed,
        "settings": {names[key]: run.settings[key] for key in apart},
        "notes": run.notes,
    }


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _print(lines: list[RunRow]) -> None:
    """On a terminal as wide as that is; elsewhere a line for each run, however long."""
    terminal = sys.stdout.isatty()
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    for line in table(lines, console.width if terminal else None):
        console.print(line, soft_wrap=True)


def _search(folders: list[Path]) -> tuple[list[Path], list[Path]]:
    """All runs, each once, and the folders that hold none."""
    if not folders and not DEFAULT.exists():
        return [], []
    found: dict[Path, Path] = {}
    strange = []
    for folder in folders or [DEFAULT]:
        runs, others = find_runs(folder)
        for run in runs:
            found.setdefault(run.resolve(), run)
        strange += others
    return list(found.values()), strange


def _settings_apart(runs: Sequence[Summary]) -> dict[Path, list[str]]:
    """For each run the settings that differ among the runs of the same task and data."""
    apart: dict[Path, list[str]] = {}
    for _, group in groupby(sorted(runs, key=_alike), key=_alike):
        alike = list(group)
        keys = differing(alike)
        apart |= {run.folder: [key for key in keys if key in run.settings] for run in alike}
    return apart


def _alike(run: Summary) -> tuple[str, str]:
    return run.task, run.data


def _newest(runs: list[Summary]) -> list[Summary]:
    return sorted(runs, key=lambda run: run.started, reverse=True)


def _by_name(runs: list[Summary]) -> list[Summary]:
    return sorted(runs, key=lambda run: str(run.folder))


def _by_best(runs: list[Summary]) -> list[Summary]:
    """The best first, each measure for itself; runs without a score last."""

    def place(run: Summary) -> tuple[bool, str, float]:
        value = run.best.value if run.best else 0.0
        sign = -1 if HIGHER_IS_BETTER.get(run.metric, True) else 1
        return run.best is None, run.metric, sign * value

    return sorted(_newest(runs), key=place)


def _by_time(runs: list[Summary]) -> list[Summary]:
    return sorted(_newest(runs), key=lambda run: -(run.most("seconds") or 0.0))


def _by_size(runs: list[Summary]) -> list[Summary]:
    return sorted(_newest(runs), key=lambda run: -(run.parameters or 0.0))


ORDERS: dict[str, Callable[[list[Summary]], list[Summary]]] = {
    "newest": _newest,
    "name": _by_name,
    "best": _by_best,
    "minutes": _by_time,
    "parameters": _by_size,
}
