"""Runs as `regard runs` lists them: in an order, with what sets each apart from those like it."""

from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from regard.metrics.metric_names import HIGHER_IS_BETTER
from regard.views.report.overview import Summary, differing, find_runs

DEFAULT = Path("runs")


def search_runs(folders: list[Path]) -> tuple[list[Path], list[Path]]:
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


def settings_apart(runs: Sequence[Summary]) -> dict[Path, list[str]]:
    """For each run the settings that differ among the runs of the same task and data."""
    apart: dict[Path, list[str]] = {}
    for _, group in groupby(sorted(runs, key=_alike), key=_alike):
        alike = list(group)
        keys = differing(alike)
        apart |= {run.folder: [key for key in keys if key in run.settings] for run in alike}
    return apart


def _alike(run: Summary) -> tuple[str, str]:
    return run.task, run.data


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


def _by_best(run: Summary) -> tuple[bool, str, float]:
    """The best first, each measure for itself; runs without a score last."""
    value = run.best.value if run.best else 0.0
    sign = -1 if HIGHER_IS_BETTER.get(run.metric, True) else 1
    return run.best is None, run.metric, sign * value


ORDERS: dict[str, Callable[[Summary], Any]] = {  # runs alike: the newest first
    "newest": lambda run: 0,
    "name": lambda run: str(run.folder),
    "best": _by_best,
    "minutes": lambda run: -(run.most("seconds") or 0.0),
    "parameters": lambda run: -(run.parameters or 0.0),
}


def ordered(runs: list[Summary], order: str) -> list[Summary]:
    """The runs in one of the orders."""
    newest = sorted(runs, key=lambda run: run.started, reverse=True)
    return sorted(newest, key=ORDERS[order])
