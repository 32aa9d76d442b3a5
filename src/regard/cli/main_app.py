"""The command line: a thin layer over the library. Answers on stdout, everything else on stderr."""

import errno
import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.cli import (
    exporting,
    importing,
    inspect_options,
    predicting,
    serving,
    shortlist_options,
    viewing,
)
from regard.cli.shared_options import (
    DATA,
    BatchSize,
    Beam,
    Debug,
    EngineName,
    Json,
    Model,
    Quantize,
    Settings,
    SourceColumn,
    SourceFile,
    TargetColumn,
    TargetFile,
    TaskName,
)
from regard.cli.streams import mend_streams
from regard.core.errors import UserError, complain
from regard.core.version import __version__

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.add_typer(predicting.app)
app.add_typer(exporting.app)
app.add_typer(viewing.app)
app.add_typer(inspect_options.app)
app.add_typer(importing.app)
app.add_typer(shortlist_options.app)
app.add_typer(serving.app)


def main() -> None:
    """Runs a command; what the user can put right is said in a line or two, with exit code 2."""
    debug = "--debug" in sys.argv
    try:
        mend_streams()
        app()
    except UserError as error:
        if debug:
            raise
        complain(error)
        sys.exit(2)
    except OSError as error:
        if debug:
            raise
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        nameless = "no room for what is written" if full else "the system"
        complain(f"{error.filename or nameless}: {error.strerror or error}")
        sys.exit(2)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    """Train, decode, inspect and serve sequence models from scratch, on your own data."""


@app.command()
def train(
    data: Annotated[str | None, typer.Argument(metavar="DATA", help=DATA)] = None,
    task: TaskName = None,
    source: SourceFile = None,
    target: TargetFile = None,
    dev: Annotated[str | None, typer.Option(help="Dev file; else a part is held back.")] = None,
    dev_source: Annotated[str | None, typer.Option(help="Dev sources, one a line.")] = None,
    dev_target: Annotated[str | None, typer.Option(help="Dev targets, one a line.")] = None,
    source_column: SourceColumn = None,
    target_column: TargetColumn = None,
    recipe: Annotated[str | None, typer.Option(help="Name or file; see regard recipes.")] = None,
    settings: Settings = None,
    origin: Annotated[
        Path | None, typer.Option("--from", metavar="MODEL", help="Start from another model.")
    ] = None,
    unlabelled: Annotated[
        str | None, typer.Option(help="File without labels, which a first model labels.")
    ] = None,
    teacher: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="The model that labels; else a new one."),
    ] = None,
    budget: Annotated[str | None, typer.Option(help="Time to train: 90s, 10m, 2h.")] = None,
    steps: Annotated[int | None, typer.Option(help="Updates to train.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Passes over the data.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of weights, order and dropout.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; else runs/<data>-<n>.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a stopped run.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing run.")] = False,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the filled settings and stop.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Train a model: regard train words.tsv --budget 10m."""
    from regard.cli.commands.resume import TrainArgs
    from regard.cli.commands.train import train_command
    from regard.data.sources.open import Place

    options = {"budget": budget, "steps": steps, "epochs": epochs, "seed": seed}
    given = [f"training.{key}={value}" for key, value in options.items() if value is not None]
    wish = TrainArgs(
        place=Place(data, source, target, source_column, target_column),
        dev=Place(dev, dev_source, dev_target, source_column, target_column, "--dev-"),
        recipe=recipe,
        settings=[*([f"task.kind={task}"] if task else []), *(settings or []), *given],
        out=out,
        resume=resume,
        force=force,
        origin=origin,
        unlabelled=unlabelled,
        teacher=teacher,
    )
    train_command(wish, print_config)


@app.command()
def evaluate(
    model: Model,
    data: Annotated[str | None, typer.Argument(metavar="DATA", help=DATA)] = None,
    source: SourceFile = None,
    target: TargetFile = None,
    source_column: SourceColumn = None,
    target_column: TargetColumn = None,
    beam: Beam = None,
    batch_size: BatchSize = 64,
    engine: EngineName = None,
    quantize: Quantize = None,
    shortlist: shortlist_options.Short = False,
    shortlist_file: shortlist_options.ShortFile = None,
    json_object: Json = False,
    debug: Debug = False,
) -> None:
    """Measure a model: regard evaluate runs/g2p-1 test.tsv."""
    from regard.cli.commands.evaluate import evaluate_command
    from regard.data.sources.open import Place

    place = Place(data, source, target, source_column, target_column)
    short = shortlist_file or shortlist
    evaluate_command(model, place, beam, batch_size, json_object, quantize, engine, short)


@app.command()
def check(
    data: Annotated[str | None, typer.Argument(metavar="DATA", help=DATA)] = None,
    task: TaskName = None,
    source: SourceFile = None,
    target: TargetFile = None,
    dev: Annotated[str | None, typer.Option(help="Dev file; else a part is held back.")] = None,
    dev_source: Annotated[str | None, typer.Option(help="Dev sources, one a line.")] = None,
    dev_target: Annotated[str | None, typer.Option(help="Dev targets, one a line.")] = None,
    source_column: SourceColumn = None,
    target_column: TargetColumn = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Length limit to try out.")] = None,
    settings: Settings = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw Zipf's law of a running text: an SVG file.")
    ] = None,
    json_object: Json = False,
    debug: Debug = False,
) -> None:
    """Say what is in the data, before anything is trained."""
    from regard.cli.commands.evaluate import check_command
    from regard.data.sources.open import Place

    if limit and task not in (None, "transduce"):
        raise UserError("--limit: only --task transduce leaves long examples out of training")
    given = [*(settings or []), *([f"task.max_length={limit}"] if limit else [])]
    check_command(
        task or "transduce",
        Place(data, source, target, source_column, target_column),
        Place(dev, dev_source, dev_target, source_column, target_column, "--dev-"),
        given,
        json_object,
        plot,
    )
