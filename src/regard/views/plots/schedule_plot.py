"""Plots of learning-rate schedules."""

from typing import TYPE_CHECKING, Any

from regard.config.load import load_config
from regard.core.errors import UserError
from regard.core.options import kinds_of
from regard.optim.schedules import InverseRoot, Schedule, WithWarmup
from regard.optim.training_options import Training
from regard.storage.run_files import read_config
from regard.views.figures.style import COLORS, add_subtitle, new_figure, panels, select_kinds
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEPS = 1000  # points per curve, and the steps of a run that is limited in other units
KINDS: dict[str, Any] = kinds_of(Schedule)


def plot_schedules(args: PlotArgs) -> "Figure":
    """Plot all schedules with their default options, or the schedule of a run or of settings."""
    if args.kinds and (args.run or args.settings):
        raise UserError("--kind cannot be combined with RUN or --set", help="drop --kind")
    if args.run:
        return _plot_run(read_config(args.run).training, f"Learning rate of {args.run.name}")
    if args.settings:
        return _plot_run(load_config(None, args.settings).training, "Learning rate")
    shown = {name: KINDS[name]() for name in select_kinds(args.kinds, list(KINDS))}
    if not args.kinds:
        shown["inverse_root, cooldown"] = InverseRoot(cooldown=0.2)
    names = list(shown)
    columns = min(4, len(names))
    rows = -(-len(names) // columns)
    figure = new_figure(2.3 * columns + 0.6, 1.9 * rows + 0.6, "Learning-rate schedules")
    axes = panels(figure, rows, columns, sharex=True, sharey=True)
    for index, (name, each) in enumerate(zip(names, axes, strict=False)):
        _plot_curve(each, shown[name], COLORS[index % len(COLORS)])
        each.set_title(name)
        each.set_xlim(0, 1)
        each.set_ylim(0, 1.06)
        each.set_xticks([0, 0.5, 1], ["0", "half", "end"])
        each.set_yticks([0, 0.5, 1])
        each.label_outer()
    for each in axes[len(names) :]:
        each.set_axis_off()
    figure.supxlabel("fraction of the run (steps, epochs or time)", fontsize=9.5)
    figure.supylabel("fraction of the maximum learning rate", fontsize=9.5)
    return figure


def _plot_curve(
    axes: "Axes",
    schedule: WithWarmup,
    color: str,
    length: float = 1.0,
    lr: float = 1.0,
    steps: int = STEPS,
) -> None:
    """Plot the learning rate as a line over a shaded area.

    length: end of the x axis. lr: maximum learning rate. steps: number of steps of the run.
    """
    fractions = [step / STEPS for step in range(STEPS + 1)]
    rates = [lr * schedule.factor(one, int(one * steps)) for one in fractions]
    x = [length * one for one in fractions]
    axes.plot(x, rates, color=color)
    axes.fill_between(x, rates, color=color, alpha=0.12, linewidth=0)


def _plot_run(training: Training, title: str) -> "Figure":
    """Plot the schedule of one run, up to its limit in steps, epochs or minutes."""
    limits = {"steps": training.steps, "epochs": training.epochs, "budget": training.budget}
    unit, length = next(((k, v) for k, v in limits.items() if v), ("fraction of the run", 1.0))
    if unit == "budget":
        unit, length = "minutes", length / 60
    figure = new_figure(6.4, 3.4, title)
    (axes,) = panels(figure, 1, 1)
    steps = training.steps or STEPS
    _plot_curve(axes, training.schedule, COLORS[0], length, training.lr or 1.0, steps)
    settings = {"kind": training.schedule.kind} | training.schedule.model_dump(mode="json")
    add_subtitle(axes, ", ".join(f"{key}={value}" for key, value in settings.items()))
    axes.set_xlabel(unit)
    axes.set_ylabel("learning rate" if training.lr else "fraction of the maximum learning rate")
    axes.set_xlim(0, length)
    axes.set_ylim(bottom=0)
    return figure
