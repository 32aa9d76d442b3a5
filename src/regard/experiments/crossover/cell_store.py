"""The file with measured cells, which an interrupted command continues with."""

import os
import platform
from pathlib import Path
from typing import Any, NamedTuple

import torch

from regard.core.errors import UserError
from regard.core.files import corrupted, read_object, write_json
from regard.experiments.crossover.attention_layer import HEADS, ROWS, WIDTH
from regard.experiments.crossover.measure_cell import Cell, Cost

FILE = "cells.json"


class Measured(NamedTuple):
    """The cost of a cell, or the reason why it was skipped."""

    cost: Cost | None
    reason: str = ""


def describe_machine(threads: int) -> dict[str, Any]:
    """Return what results depend on besides the code: processor, threads, versions and sizes."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": threads,
        "torch": torch.__version__,
        "width": WIDTH,
        "heads": HEADS,
        "rows": ROWS,
    }


class CellStore:
    """Measured cells in a folder. Each new cell is written at once."""

    def __init__(self, folder: Path, machine: dict[str, Any]) -> None:
        self.path, self.machine = folder / FILE, machine
        self.cells: dict[Cell, Measured] = {}
        if self.path.exists():
            self._read()

    def add(self, cell: Cell, measured: Measured) -> None:
        """Add a cell and write the file."""
        self.cells[cell] = measured
        rows = [
            {**cell._asdict(), "reason": found.reason, "cost": found.cost and found.cost._asdict()}
            for cell, found in self.cells.items()
        ]
        write_json(self.path, {"machine": self.machine, "cells": rows})

    def _read(self) -> None:
        try:
            found = read_object(self.path)
        except UserError as error:
            help = "delete it, or choose another --out"
            raise UserError(f"{self.path}: not a file of this command", help=help) from error
        if found.get("machine") != self.machine:
            old = found.get("machine")
            differing = [
                f"{key} {value} instead of {self.machine.get(key)}"
                for key, value in (old if isinstance(old, dict) else {}).items()
                if value != self.machine.get(key)
            ]
            raise UserError(
                f"{self.path}: measured with {', '.join(differing) or 'unknown settings'}",
                help="choose another --out",
            )
        try:
            for row in found["cells"]:
                cost = None if row["cost"] is None else Cost(**row["cost"])
                self.cells[Cell(row["kernel"], row["length"])] = Measured(cost, row["reason"])
        except (KeyError, TypeError) as error:
            raise corrupted(self.path, f"invalid cell: {error}") from error


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
