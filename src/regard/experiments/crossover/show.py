"""The tables that `regard crossover` prints."""

from collections.abc import Callable, Iterator

from regard.experiments.crossover.attention_layer import FUSED
from regard.experiments.crossover.measure_cell import Cost
from regard.experiments.crossover.run_crossover import Crossover

TABLES: dict[str, Callable[[Cost], float | None]] = {
    "forward + backward, ms": lambda cost: cost.forward_ms + cost.backward_ms,
    "one decoding step, ms": lambda cost: cost.step_ms,
    "peak memory, MB": lambda cost: cost.peak_mb,
}
SKIPPED, NO_STEP = "skipped", "-"


def table_lines(found: Crossover) -> Iterator[str]:
    """Yield one table per cost, with a row per kernel; then from which length kernels pay."""
    for title, value in TABLES.items():
        yield title
        rows = [["", *(f"{length:,}" for length in found.lengths)]]
        for kernel in found.kernels:
            costs = [found.cost(kernel, length) for length in found.lengths]
            rows.append([kernel, *(SKIPPED if c is None else number(value(c)) for c in costs)])
        yield from _aligned(rows)
        yield ""
    yield f"faster than {FUSED} (forward + backward) from this length on:"
    yield from _aligned(
        [
            [kernel, "never here" if length is None else f"{length:,}"]
            for kernel, length in found.pays_from.items()
        ]
    )


def number(value: float | None) -> str:
    """Return a value with three digits, or a dash."""
    if value is None:
        return NO_STEP
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _aligned(rows: list[list[str]]) -> Iterator[str]:
    """Yield rows with the first column on the left and the others on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
        yield "  ".join([f"  {first.ljust(widths[0])}", *cells])
