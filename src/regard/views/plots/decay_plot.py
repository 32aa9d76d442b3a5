"""Plots of scheduled sampling: the probability that the decoder reads the true token."""

from typing import TYPE_CHECKING, Any

from regard.core.errors import UserError
from regard.core.options import kinds_of
from regard.objectives.decay import AnyDecay
from regard.storage.run_files import read_config
from regard.storage.run_folder import points, read_folder
from regard.views.figures.style import COLORS, add_subtitle, new_figure, panels, select_kinds
from regard.views.plots.plot_args import PlotArgs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 200
KINDS: dict[str, Any] = kinds_of(AnyDecay)


def plot_decays(args: PlotArgs) -> "Figure":
    """Plot all decays with their default options, or that of a run with what it sampled."""
    if args.run:
        if args.kinds:
            raise UserError("--kind cannot be combined with RUN", help="drop --kind")
        return _plot_run(args)
    figure = new_figure(6.4, 3.4, "Scheduled sampling: probability of the true token")
    (axes,) = panels(figure, 1, 1)
    fractions = [point / POINTS for point in range(POINTS + 1)]
    for name, color in zip(select_kinds(args.kinds, list(KINDS)), COLORS, strict=False):
        decay = KINDS[name]()
        axes.plot(fractions, [decay.probability(p) for p in fractions], color=color, label=name)
    axes.set_xlabel("fraction of the run (steps, epochs or time)")
    axes.set_ylabel("probability")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.05)
    axes.legend()
    return figure


def _plot_run(args: PlotArgs) -> "Figure":
    """Plot the fraction of own predictions that a run sampled, and how many were wrong."""
    assert args.run is not None
    decay = getattr(read_config(args.run).objective, "decay", None)
    records = read_folder(args.run).train
    own, wrong = (points(records, key) for key in ("own_inputs", "wrong_inputs"))
    if decay is None or not own:
        raise UserError(
            f"{args.run}: has no scheduled sampling",
            help="train with --set objective.kind=scheduled",
        )
    figure = new_figure(6.4, 3.4, f"Decoder inputs of {args.run.name}")
    (axes,) = panels(figure, 1, 1)
    for line, name, color in ((own, "own predictions", COLORS[0]), (wrong, "wrong", COLORS[1])):
        axes.plot(*zip(*line, strict=True), color=color, label=name)
    add_subtitle(axes, f"{decay.kind} decay to {decay.final:g}")
    axes.set_xlabel("step")
    axes.set_ylabel("fraction of the inputs")
    axes.set_ylim(bottom=0)
    axes.legend()
    return figure
