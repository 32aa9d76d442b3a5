"""Benchmarks of many trainings: each cell is stored when it is done, and never done twice."""

import importlib
import json
import sys
import time
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from surroundings import RESULTS, commit, machine

Cell = dict[str, Any]


def run_cells(name: str, cells: Iterable[Cell], run: Callable[[Cell], Cell]) -> list[Cell]:
    """Return the results of all cells; those in bench/results/NAME.json are not run again.

    A cell is a dict of what was asked for. `run` returns what it found.
    """
    path = RESULTS / f"{name}.json"
    rows: list[Cell] = json.loads(path.read_text())["rows"] if path.exists() else []
    found = []
    for cell in cells:
        row = next((old for old in rows if cell.items() <= old.items()), None)
        if row is None:
            row = cell | run(cell) | {"commit": commit()}
            rows.append(row)
            save(path, rows)
        found.append(row)
        shown = {key: value for key, value in row.items() if not isinstance(value, (list, dict))}
        print(json.dumps(shown), file=sys.stderr, flush=True)
    return found


def save(path: Path, rows: list[Cell]) -> None:
    """Write all rows, in one go."""
    path.parent.mkdir(exist_ok=True)
    new = path.with_suffix(".tmp")
    new.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")
    new.replace(path)


def use_processor_clock() -> None:
    """Let training in this process count processor time, so that other work does not matter.

    For one thread only: the processor time of two threads is counted twice.
    """
    own = types.SimpleNamespace(**vars(time))
    own.monotonic = time.process_time
    for name in ("run", "validation"):
        vars(importlib.import_module(f"regard.training.{name}"))["time"] = own
