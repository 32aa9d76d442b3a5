"""The command `regard plot`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.command_options import Debug, Settings
from regard.cli.output_files import FIGURES as FIGURE_FILES
from regard.cli.output_files import Force, check_overwrite
from regard.core.errors import UserError, info
from regard.core.suggest import suggest_names


def plot(
    what: Annotated[
        str | None,
        typer.Argument(metavar="[WHAT]", help="Figure to plot; omit to list all."),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RUN]",
            help="Run folder, to plot its schedule or a search tree of its model; for the figure "
            "`sound`, a sound file.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write, .png or .svg (default: WHAT.png).")
    ] = None,
    kinds: Annotated[
        list[str] | None, typer.Option("--kind", help="Plot only these variants (repeatable).")
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(help="Input text whose search is plotted, or path of an image."),
    ] = None,
    beam: Annotated[
        int | None, typer.Option(min=1, help="Beam size (only for `plot search`).")
    ] = None,
    settings: Settings = None,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Plot a textbook figure: regard plot optimizers --out optimizers.svg"""
    from regard.views.figures.style import check_suffix, save, styled
    from regard.views.plots import FIGURES
    from regard.views.plots.plot_args import PlotArgs

    if what is None:
        width = 2 + max(map(len, FIGURES))
        for name, figure in FIGURES.items():
            print(f"{name:<{width}}{figure.about}")
        return
    if what not in FIGURES:
        raise UserError(f"unknown figure {what!r}{suggest_names(what, FIGURES)}")
    given: dict[str, tuple[str, Any]]
    given = {"--kind": ("kinds", kinds), "RUN": ("run", run), "--set": ("settings", settings)}
    given |= {"--text": ("text", text), "--beam": ("beam", beam)}
    for word, (name, value) in given.items():
        if value and name not in FIGURES[what].reads:
            raise UserError(f"{word}: not supported for figure {what}")
    if FIGURES[what].needs_run and run is None:
        raise UserError(f"plot {what}: expected a run folder", help=f"regard plot {what} RUN")
    path = out or Path(f"{what}.png")
    check_suffix(path)
    check_overwrite("--out", path, FIGURE_FILES[path.suffix.lower()], force)
    with styled():
        save(FIGURES[what].plot(PlotArgs(kinds or [], run, settings or [], text, beam)), path)
    info(f"written: {path}")
