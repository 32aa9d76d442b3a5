"""Commands that look: at recipes, runs, reports, diagnoses and pictures."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.shared_options import Debug, Json, Settings

app = typer.Typer()


@app.command()
def recipes(debug: Debug = False) -> None:
    """List the recipes that come along."""
    from regard.config.load import recipe_folder, recipe_names

    width = 2 + max(len(name) for name in recipe_names())
    for name in recipe_names():
        first = (recipe_folder() / f"{name}.yaml").read_text("utf-8").splitlines()[0]
        print(f"{name:<{width}}{first.removeprefix('#').strip()}")


@app.command()
def runs(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="FOLDER", help="Where runs lie; else runs/.")
    ] = None,
    sort: Annotated[str, typer.Option(help="newest, name, best, minutes, parameters.")] = "newest",
    json_object: Json = False,
    debug: Debug = False,
) -> None:
    """List runs: what differs between them, how good each is."""
    from regard.cli.commands.runs import runs_command

    runs_command(folders or [], sort, json_object)


@app.command()
def report(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="Run folders, or folders of runs.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page; of one run else its report.html.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Write the page of a run, or compare runs: regard report runs/a runs/b --out both.html."""
    from regard.cli.commands.report import report_command

    report_command(folders, out)


@app.command()
def diagnose(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Only the record and the data; no probes.")
    ] = False,
    json_object: Json = False,
    debug: Debug = False,
) -> None:
    """Say why a model is bad, and what to change: exit code 1 where a problem is found."""
    from regard.cli.commands.diagnose import diagnose_command

    diagnose_command(run, quick, json_object)


@app.command()
def plot(
    what: Annotated[str | None, typer.Argument(metavar="[WHAT]", help="None: list them.")] = None,
    run: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="schedule, search: its own.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A .png or .svg file; else WHAT.png.")] = None,
    kinds: Annotated[list[str] | None, typer.Option("--kind", help="Only these kinds.")] = None,
    text: Annotated[str | None, typer.Option(help="search: what RUN is to answer.")] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="search: outputs that go on.")] = None,
    settings: Settings = None,
    debug: Debug = False,
) -> None:
    """Draw a textbook picture: regard plot optimizers --out optimizers.svg."""
    from regard.cli.commands.plot import plot_command
    from regard.views.plots.plot_args import PlotArgs

    plot_command(what, out, PlotArgs(kinds or [], run, settings or [], text, beam))
