"""Learning-rate schedules over a run."""

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

STEPS = 1000  # of a run whose length is not in steps
KINDS: dict[str, Any] = kinds_of(Schedule)


def draw(wish: PlotArgs) -> "Figure":
    """Each kind with its defaults, or the schedule of a run or of settings."""
    if wish.kinds and (wish.run or wish.settings):
        raise UserError("--kind shows kinds with their defaults; leave RUN and --set out")
    if wish.run:
        return _one(read_config(wish.run).training, f"Learning rate of {wish.run.name}")
    if wish.settings:
        return _one(load_config(None, wish.settings).training, "Learning rate")
    shown = {name: KINDS[name]() for name in select_kinds(wish.kinds, list(KINDS))}
    if not wish.kinds:
        shown["inverse_root, cooldown"] = InverseRoot(cooldown=0.2)
    names = list(shown)
    columns = min(4, len(names))
    rows = -(-len(names) // columns)
    figure = new_figure(2.3 * columns + 0.6, 1.9 * rows + 0.6, "Learning-rate schedules")
    axes = panels(figure, rows, columns, sharex=True, sharey=True)
    for place, (name, each) in enumerate(zip(names, axes, strict=False)):
        _curve(each, shown[name], COLORS[place % len(COLORS)])
        each.set_title(name)
        each.set_xlim(0, 1)
        each.set_ylim(0, 1.06)
        each.set_xticks([0, 0.5, 1], ["0", "half", "end"])
        each.set_yticks([0, 0.5, 1])
        each.label_outer()
    for each in axes[len(names) :]:
        each.set_axis_off()
    figure.supxlabel("share of the run: of its steps, its epochs or its time", fontsize=9.5)
    figure.supylabel("share of the highest rate", fontsize=9.5)
    return figure


def _curve(
    axes: "Axes",
    schedule: WithWarmup,
    color: str,
    length: float = 1.0,
    lr: float = 1.0,
    steps: int = STEPS,
) -> None:
    """The rate along the run as a line over a shade."""
    shares = [place / STEPS for place in range(STEPS + 1)]
    rates = [lr * schedule.factor(share, int(share * steps)) for share in shares]
    places = [length * share for share in shares]
    axes.plot(places, rates, color=color)
    axes.fill_between(places, rates, color=color, alpha=0.12, linewidth=0)


def _one(training: Training, title: str) -> "Figure":
    """The schedule of one run, in its own units."""
    limits = {"steps": training.steps, "epochs": training.epochs, "budget": training.budget}
    unit, length = next(((k, v) for k, v in limits.items() if v), ("share of the run", 1.0))
    if unit == "budget":
        unit, length = "minutes", length / 60
    figure = new_figure(6.4, 3.4, title)
    (axes,) = panels(figure, 1, 1)
    steps = training.steps or STEPS
    _curve(axes, training.schedule, COLORS[0], length, training.lr or 1.0, steps)
    settings = {"kind": training.schedule.kind} | training.schedule.model_dump(mode="json")
    add_subtitle(axes, ", ".join(f"{key}={value}" for key, value in settings.items()))
    axes.set_xlabel(unit)
    axes.set_ylabel("learning rate" if training.lr else "share of the highest rate")
    axes.set_xlim(0, length)
    axes.set_ylim(bottom=0)
    return figure
