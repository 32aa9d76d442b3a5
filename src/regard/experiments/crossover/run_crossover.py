"""Measures every cell of a crossover and finds the lengths from which kernels pay."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.core.errors import info
from regard.core.progress import ProgressBar
from regard.experiments.crossover.attention_layer import FUSED
from regard.experiments.crossover.cell_store import CellStore, Measured, describe_machine
from regard.experiments.crossover.measure_cell import Cell, Cost, measure_cell
from regard.experiments.crossover.own_process import (
    LimitExceeded,
    Limits,
    call_in_process,
    free_memory,
)

LENGTHS = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)
MAX_SECONDS = 15.0  # per cell
EMPTY = dict.fromkeys(Cost._fields)


@dataclass(frozen=True)
class Crossover:
    """The cells of all kernels and lengths, and the machine that they were measured on."""

    machine: dict[str, Any]
    kernels: Sequence[str]
    lengths: Sequence[int]
    cells: Mapping[Cell, Measured]

    def cost(self, kernel: str, length: int) -> Cost | None:
        """Return the cost of a cell; None if it was skipped."""
        return self.cells[Cell(kernel, length)].cost

    def seconds(self, kernel: str, length: int) -> float | None:
        """Return the milliseconds of a forward and a backward pass; None if skipped."""
        cost = self.cost(kernel, length)
        return None if cost is None else cost.forward_ms + cost.backward_ms

    @property
    def pays_from(self) -> dict[str, int | None]:
        """Return the length from which each kernel is faster than fused softmax, and stays so."""
        return {kernel: self._pays_from(kernel) for kernel in self.kernels if kernel != FUSED}

    def _pays_from(self, kernel: str) -> int | None:
        found = None
        for length in sorted(self.lengths, reverse=True):
            own, fused = self.seconds(kernel, length), self.seconds(FUSED, length)
            if own is None or (fused is not None and own >= fused):
                break
            found = length
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON. All values of a skipped cell are null."""
        rows = [
            {"kernel": kernel, "length": length} | ({**EMPTY} if cost is None else cost._asdict())
            for kernel in self.kernels
            for length in self.lengths
            for cost in [self.cost(kernel, length)]
        ]
        return {"machine": self.machine, "rows": rows, "pays_from": self.pays_from}


def run_crossover(
    folder: Path, kernels: Sequence[str], lengths: Sequence[int], threads: int
) -> Crossover:
    """Measure all cells that the folder does not contain yet, each in a process of its own.

    All kernels of one length come before the next length, so a change in the load of the machine
    affects them alike.
    """
    store = CellStore(folder, describe_machine(threads))
    plan = [Cell(kernel, length) for length in sorted(lengths) for kernel in kernels]
    missing = [cell for cell in plan if cell not in store.cells]
    if len(missing) < len(plan):
        info(f"{store.path}: {len(plan) - len(missing)} of {len(plan)} cells are measured already")
    with ProgressBar("measuring", len(missing)) as bar:
        for cell in missing:
            measured = _measure(cell, threads, store.cells)
            if measured.reason:
                info(f"skipped: {cell} ({measured.reason})")
            store.add(cell, measured)
            bar.advance(1)
    cells = {cell: store.cells[cell] for cell in plan}
    return Crossover(store.machine, kernels, sorted(lengths), cells)


def _measure(cell: Cell, threads: int, known: Mapping[Cell, Measured]) -> Measured:
    """Return the cost of a cell, or why it is skipped."""
    if shorter := _skipped_length(cell, known):
        return Measured(None, f"{shorter:,} positions exceed a limit already")
    try:
        limits = Limits(MAX_SECONDS, free_memory())
        return Measured(call_in_process(measure_cell, (cell, threads), limits))
    except LimitExceeded as error:
        return Measured(None, str(error))


def _skipped_length(cell: Cell, known: Mapping[Cell, Measured]) -> int | None:
    """Return the shortest length at which the same kernel was skipped, if it is shorter."""
    lengths: Iterable[int] = (
        other.length
        for other, measured in known.items()
        if other.kernel == cell.kernel and other.length < cell.length and measured.cost is None
    )
    return min(lengths, default=None)
