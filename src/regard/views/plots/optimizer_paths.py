"""Plot of the paths of optimizers on functions of two weights."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from regard.core.options import kinds_of
from regard.optim.optimizers import Optimizer
from regard.optim.schedules import LinearSchedule
from regard.views.figures.style import COLORS, INK, hide_frame, new_figure, panels, select_kinds
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Path = list[tuple[float, float]]
STEPS = 60
LEARNING_RATES = [1.0, 0.5, 0.2, 0.1, 0.05, 0.02]
# without weight decay, adamw equals adam
EXCLUDED = ("auto", "closed_form", "adamw")
KINDS: dict[str, Any] = {
    name: kind for name, kind in kinds_of(Optimizer).items() if name not in EXCLUDED
}


@dataclass(frozen=True)
class Surface:
    """A function of two weights. start: initial weights. window: the plotted region."""

    name: str
    value: Callable[[Tensor, Tensor], Tensor]
    start: tuple[float, float]
    minimum: tuple[float, float]
    window: tuple[float, float, float, float]  # left, right, bottom, top


SURFACES = (
    Surface(
        "Ravine",
        lambda x, y: 0.1 * x**2 + 3 * y**2,
        (-4.5, 1.6),
        (0.0, 0.0),
        (-5, 1.5, -2.2, 2.2),
    ),
    Surface(
        "Saddle point",
        lambda x, y: x**2 + (y**2 - 1) ** 2 / 2,
        (-1.8, 0.02),
        (0.0, 1.0),
        (-2.1, 1.1, -0.8, 1.6),
    ),
    Surface(
        "Rosenbrock function",
        lambda x, y: (1 - x) ** 2 + 5 * (y - x**2) ** 2,
        (-1.2, 1.6),
        (1.0, 1.0),
        (-1.7, 1.7, -0.7, 2.2),
    ),
)


class Point(nn.Module):
    """A model of two weights. They form a 1x2 matrix, because Muon requires matrices."""

    def __init__(self, start: tuple[float, float]) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.tensor([start]))


def path(kind: str, surface: Surface, lr: float) -> Path:
    """Return the weights after each step of an optimizer with linear learning-rate decay to 0."""
    point, schedule = Point(surface.start), LinearSchedule(warmup=0)
    built = KINDS[kind]().build(point, lr, {})
    points = [surface.start]
    for step in range(STEPS):
        surface.value(*point.weights[0]).backward()
        for optimizer in built:
            for group in optimizer.param_groups:
                group.update(lr=lr * schedule.factor(step / STEPS, step), weight_decay=0.0)
            optimizer.step()
            optimizer.zero_grad()
        x, y = point.weights.detach()[0].tolist()
        points.append((x, y))
    return points


def cost(surface: Surface, points: Path) -> float:
    """Return the mean log function value along a path, plus a penalty for its length.

    The cost is infinite if the path leaves the window of the surface.
    """
    left, right, bottom, top = surface.window
    if not all(left < x < right and bottom < y < top for x, y in points):
        return math.inf
    x, y = torch.tensor(points, dtype=torch.float64).T
    lowest = surface.value(*torch.tensor(surface.minimum, dtype=torch.float64))
    height = (surface.value(x, y) - lowest + 1e-3).log().mean()
    length = sum(math.dist(*pair) for pair in itertools.pairwise(points))
    return float(height) + 0.3 * length / math.dist(surface.start, surface.minimum)


def best_path(kind: str, surface: Surface) -> Path:
    """Return the path with the lowest cost among all learning rates."""
    return min(
        (path(kind, surface, lr) for lr in LEARNING_RATES), key=lambda each: cost(surface, each)
    )


def plot_optimizer_paths(args: PlotArgs) -> "Figure":
    """Plot one column per function, with at most four paths per panel."""
    names = select_kinds(args.kinds, list(KINDS))
    rows = [names[start : start + 4] for start in range(0, len(names), 4)]
    figure = new_figure(10.0, 3.35 * len(rows) + 0.5, "Optimizer paths")
    axes = iter(panels(figure, len(rows), len(SURFACES)))
    for row in rows:
        for surface in SURFACES:
            panel = next(axes)
            _contours(panel, surface)
            for name in row:
                x, y = zip(*best_path(name, surface), strict=True)
                color = COLORS[list(KINDS).index(name) % len(COLORS)]
                panel.plot(x, y, color=color, zorder=3, label=name, marker="o", markersize=2.2)
            if row is rows[0]:
                panel.set_title(surface.name)
            if row is rows[-1]:
                panel.set_xlabel("weight 1")
            if surface is SURFACES[0]:
                panel.set_ylabel("weight 2")
    lines = [line for panel in figure.axes for line in panel.get_lines()]
    named = {str(line.get_label()): line for line in lines}
    legend = [named[name] for name in names]
    figure.legend(legend, names, loc="outside lower center", ncols=len(names), handlelength=1.5)
    return figure


def _contours(axes: "Axes", surface: Surface) -> None:
    """Plot contour lines, the start and the minimum of a function."""
    left, right, bottom, top = surface.window
    x, y = torch.meshgrid(
        torch.linspace(left, right, 200), torch.linspace(bottom, top, 200), indexing="xy"
    )
    z = surface.value(x, y).sqrt()
    levels = torch.linspace(0, float(z.max()), 18).tolist()
    axes.contourf(x, y, z, levels=levels, cmap="Greys", alpha=0.22)
    axes.contour(x, y, z, levels=levels, colors="#c4c6c0", linewidths=0.6)
    hide_frame(axes)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.plot(*surface.start, "o", color=INK, markersize=6, zorder=5)
    axes.plot(*surface.minimum, "*", color=INK, markersize=12, zorder=5)
