"""The command that trains a model."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli import command_options as option


def train(
    data: option.DataFile = None,
    task: option.TaskName = None,
    source: option.SourceFile = None,
    target: option.TargetFile = None,
    dev: option.Dev = None,
    dev_source: option.DevSource = None,
    dev_target: option.DevTarget = None,
    source_column: option.SourceColumn = None,
    target_column: option.TargetColumn = None,
    recipe: Annotated[str | None, typer.Option(help="Name or file; see regard recipes.")] = None,
    settings: option.Settings = None,
    origin: Annotated[
        Path | None, typer.Option("--init-from", metavar="MODEL", help="Start from another model.")
    ] = None,
    unlabeled: Annotated[
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
    debug: option.Debug = False,
) -> None:
    """Train a model: regard train words.tsv --budget 10m."""
    from regard.data.sources.open import DataSpec
    from regard.experiments.train_job import train_job
    from regard.training.train_folder import TrainArgs

    options = {"budget": budget, "steps": steps, "epochs": epochs, "seed": seed}
    given = [f"training.{key}={value}" for key, value in options.items() if value is not None]
    wish = TrainArgs(
        place=DataSpec(data, source, target, source_column, target_column),
        dev=DataSpec(dev, dev_source, dev_target, source_column, target_column, "--dev-"),
        recipe=recipe,
        settings=[*([f"task.kind={task}"] if task else []), *(settings or []), *given],
        out=out,
        resume=resume,
        force=force,
        origin=origin,
        unlabeled=unlabeled,
        teacher=teacher,
    )
    train_job(wish, print_config)
