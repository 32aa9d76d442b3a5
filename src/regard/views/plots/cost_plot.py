"""Plot of time and memory of attention kernels over the length."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from regard.views.figures.style import COLORS, FAINT, INK, new_figure, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = dict[str, Any]
REFERENCES = ("softmax", "softmax-explicit")  # black lines
DASHES: tuple[Any, ...] = ("solid", (0, (4, 1.5)), (0, (1, 1)))
COSTS: dict[str, Callable[[Row], float | None]] = {
    "Time of forward + backward (ms)": lambda row: _sum(row["forward_ms"], row["backward_ms"]),
    "Peak memory (MB)": lambda row: row["peak_mb"],
    "Time of one decoding step (ms)": lambda row: row["step_ms"],
}


def plot_costs(rows: Sequence[Row]) -> "Figure":
    """Plot costs of kernels over lengths on logarithmic axes, with slopes 1 and 2.

    rows: the rows of `crossover.json`. Skipped cells, whose values are None, are omitted.
    """
    from matplotlib.ticker import LogLocator

    kernels = list(dict.fromkeys(row["kernel"] for row in rows))
    lengths = sorted({row["length"] for row in rows})
    figure = new_figure(12.6, 4.6, "Attention kernels: cost over length")
    styles = _styles(kernels)
    for axes, (title, value) in zip(panels(figure, 1, len(COSTS)), COSTS.items(), strict=True):
        points = {kernel: _points(rows, kernel, value) for kernel in kernels}
        for kernel, (x, y) in points.items():
            axes.plot(x, y, marker="o", markersize=2.5, label=kernel, **styles[kernel])
        axes.set_title(title)
        if not any(y for _, y in points.values()):
            axes.text(0.5, 0.5, "not measured", ha="center", color=FAINT)
            axes.set_axis_off()
            continue
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(lengths, [f"{length:,}" for length in lengths], rotation=45)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.set_xlabel("length n")
        _mark_slopes(axes, lengths, [y for _, ys in points.values() for y in ys])
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right upper", fontsize=8)
    return figure


def _styles(kernels: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the color and the dashes of each kernel's line."""
    found: dict[str, dict[str, Any]] = {}
    others = [kernel for kernel in kernels if kernel not in REFERENCES]
    for number, name in enumerate(kernel for kernel in REFERENCES if kernel in kernels):
        found[name] = {"color": INK, "linestyle": DASHES[number], "linewidth": 2.4}
    for number, name in enumerate(others):
        dash = DASHES[number // len(COLORS) % len(DASHES)]
        color = COLORS[number % len(COLORS)]
        found[name] = {"color": color, "linestyle": dash, "linewidth": 1.3}
    return found


def _points(
    rows: Sequence[Row], kernel: str, value: Callable[[Row], float | None]
) -> tuple[list[int], list[float]]:
    """Return the lengths and costs of a kernel that were measured."""
    own = [(row["length"], value(row)) for row in rows if row["kernel"] == kernel]
    found = [(length, cost) for length, cost in own if cost]
    return [length for length, _ in found], [cost for _, cost in found]


def _mark_slopes(axes: "Axes", lengths: Sequence[int], costs: Sequence[float]) -> None:
    """Draw lines that grow like n and n^2 in the lower right corner of a panel."""
    if len(lengths) < 2 or not costs or min(costs) == max(costs):
        return
    bottom, top = min(costs), max(costs)
    first, last = lengths[len(lengths) // 2], lengths[-1]
    for power, name in ((1, "~ n"), (2, "~ n²")):
        x = min(last, first * (top / bottom) ** (1 / power))  # where the line leaves the panel
        y = bottom * (x / first) ** power
        axes.plot([first, x], [bottom, y], color=FAINT, linewidth=1, linestyle=(0, (1, 2)))
        axes.text(x, y, f" {name}", color=FAINT, fontsize=8, va="center")
    axes.set_ylim(bottom / 1.5, top * 1.5)


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
