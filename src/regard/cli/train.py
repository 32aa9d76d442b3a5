"""The command `regard train`."""

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
    split_column: option.SplitColumn = None,
    edges: option.EdgesFile = None,
    id_column: option.IdColumn = None,
    graph_column: option.GraphColumn = None,
    speaker_column: option.SpeakerColumn = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="Start from a recipe: a built-in name (see `regard recipes`) or a YAML file."
        ),
    ] = None,
    settings: option.Settings = None,
    init_from: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Initialize weights and vocabulary from another model."),
    ] = None,
    unlabeled: Annotated[
        str | None,
        typer.Option(help="Unlabeled texts to pseudo-label and add to the training set."),
    ] = None,
    teacher: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="Model that assigns the pseudo-labels (default: train one first)."
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Training time, e.g. 90s, 10m, 2h; the schedule adapts to it.",
            callback=option.check_budget,
        ),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Maximum number of updates.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Maximum number of epochs.")] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Random seed for initialization, data order, dropout and task.examples."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Run folder to create (default: runs/DATA-N).")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted run.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing run.")] = False,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the complete configuration and exit.")
    ] = False,
    debug: option.Debug = False,
) -> None:
    """Train a model: regard train words.tsv --budget 10m"""
    from regard.data.sources.open import DataSpec
    from regard.experiments.train_job import train_job
    from regard.training.train_folder import TrainArgs

    options = {"budget": budget, "steps": steps, "epochs": epochs, "seed": seed}
    limits = [f"training.{key}={value}" for key, value in options.items() if value is not None]
    args = TrainArgs(
        data=DataSpec(
            *(data, source, target, source_column, target_column),
            split_column=split_column,
            edges=edges,
            id_column=id_column,
            graph_column=graph_column,
            speaker_column=speaker_column,
        ),
        dev=DataSpec(
            *(dev, dev_source, dev_target, source_column, target_column, "--dev-"),
            speaker_column=speaker_column if dev else None,
        ),
        recipe=recipe,
        settings=[*([f"task.kind={task}"] if task else []), *(settings or []), *limits],
        out=out,
        resume=resume,
        force=force,
        init_from=init_from,
        unlabeled=unlabeled,
        teacher=teacher,
    )
    train_job(args, print_config)
