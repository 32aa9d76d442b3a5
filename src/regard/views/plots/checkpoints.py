"""Plot of the validations of a run: the best loss need not give the best outputs."""

from typing import TYPE_CHECKING

from regard.core.errors import UserError
from regard.metrics.metric_names import LABELS, best_of
from regard.storage.run_files import read_config
from regard.storage.run_folder import number, points, read_folder
from regard.views.figures.style import COLORS, FAINT, new_figure, panels
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MIN_VALIDATIONS = 3
Line = list[tuple[float, float]]


def plot_checkpoints(args: PlotArgs) -> "Figure":
    """Plot dev loss and metric over steps with their best points, and one against the other."""
    assert args.run is not None
    metric = read_config(args.run).task.metric
    records = [one for one in read_folder(args.run).dev if number(one.get("loss")) is not None]
    losses, scores = points(records, "loss"), points(records, "scores", metric)
    if len(scores) < MIN_VALIDATIONS or len(losses) != len(scores):
        raise UserError(
            f"{args.run}: expected at least {MIN_VALIDATIONS} validations with a loss and "
            f"{metric}, found {min(len(losses), len(scores))}"
        )
    lowest = min(losses, key=lambda point: point[1])[0]
    best = best_of(metric)(scores, key=lambda point: point[1])[0]
    figure = new_figure(9.6, 3.2, f"Validations of {args.run.name}")
    left, middle, right = panels(figure, 1, 3)
    name = LABELS.get(metric, metric)
    for axes, line, title in ((left, losses, "dev loss"), (middle, scores, name)):
        axes.plot(*zip(*line, strict=True), color=FAINT, marker=".")
        axes.set_title(title)
        axes.set_xlabel("step")
        _mark(axes, dict(line), lowest, best)
    pairs = [(loss[1], score[1]) for loss, score in zip(losses, scores, strict=True)]
    right.plot(*zip(*pairs, strict=True), color=FAINT, marker=".")
    right.set_title("one against the other")
    right.set_xlabel("dev loss")
    right.set_ylabel(name)
    steps = dict(zip((step for step, _ in losses), pairs, strict=True))
    for step, color in ((lowest, COLORS[0]), (best, COLORS[1])):
        right.plot(*steps[step], "o", color=color)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=2)
    return figure


def _mark(axes: "Axes", line: dict[float, float], lowest: float, best: float) -> None:
    """Mark the steps of the lowest loss and of the best metric."""
    marks = ((lowest, "lowest loss", COLORS[0]), (best, "best metric", COLORS[1]))
    for step, name, color in marks:
        label = f"{name}: step {step:,.0f}"
        axes.plot(step, line[step], "o", color=color, label=label)
