"""Commands that use a trained model: predict and score."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.cli import search_options as option
from regard.cli.shared_options import (
    BatchSize,
    Debug,
    Json,
    Model,
    SourceColumn,
    SourceFile,
    TargetColumn,
    TargetFile,
)
from regard.cli.shortlist_options import Short, ShortFile
from regard.core.errors import UserError

app = typer.Typer()
SPEED = "Model, speed and memory"
Texts = Annotated[
    list[str] | None, typer.Argument(metavar="[TEXT]...", help="As a line of a file has it.")
]
Input = Annotated[str | None, typer.Option(help="File with one text a line; - stdin.")]


def _check_asked(texts: list[str] | None, input: str | None, verb: str) -> None:
    """Texts come from one place, and a terminal is none."""
    if texts and input:
        raise UserError("give texts on the command line or --input, not both")
    if not texts and input is None and sys.stdin.isatty():
        raise UserError(f"nothing to {verb}: give texts, --input FILE, or pipe lines in")


@app.command()
def predict(
    model: Model,
    texts: Texts = None,
    input: Input = None,
    output: Annotated[
        Path | None, typer.Option(help="File for the answers; a stopped command goes on.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Begin anew where a command was stopped.")
    ] = False,
    json_lines: Json = False,
    symbols: Annotated[
        bool, typer.Option("--symbols", help="In JSON: each symbol with its score.")
    ] = False,
    alignments: Annotated[
        bool, typer.Option("--alignments", help="In JSON: what each symbol looked at.")
    ] = False,
    source_column: SourceColumn = None,
    target_column: TargetColumn = None,
    threshold: Annotated[float | None, typer.Option(help="Several labels: give from here.")] = None,
    debug: Debug = False,
    beam: option.Width = None,
    nbest: option.Nbest = 1,
    alpha: option.Alpha = None,
    normalise: option.Normalise = None,
    coverage: option.Coverage = None,
    stop: option.Stop = None,
    groups: option.Groups = None,
    diversity: option.Diversity = None,
    min_length: option.MinLength = None,
    max_length: option.MaxLength = None,
    no_repeat: option.NoRepeat = None,
    settings: option.SearchSettings = None,
    sample: option.Sampled = False,
    temperature: option.Temperature = None,
    top_k: option.TopK = None,
    top_p: option.TopP = None,
    min_p: option.MinP = None,
    length: option.Length = None,
    seed: option.Seed = None,
    prefix: option.Prefix = "",
    must: option.Must = None,
    ban: option.Ban = None,
    input_json: option.InputJson = False,
    alternatives: option.Alternatives = 0,
    others: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="MODEL",
            help="A model to answer together with; repeat it.",
            rich_help_panel=SPEED,
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="torch, ctranslate2, onnx or auto.", rich_help_panel=SPEED),
    ] = None,
    quantize: Annotated[
        str | None, typer.Option(metavar="int8", help="Small weights.", rich_help_panel=SPEED)
    ] = None,
    shortlist: Short = False,
    shortlist_file: ShortFile = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Texts at a time, at most; else 64 to 256. Changes no answer.",
            rich_help_panel=SPEED,
        ),
    ] = None,
    batch_tokens: Annotated[
        int,
        typer.Option(
            min=1, help="Symbols at a time, at most. Changes no answer.", rich_help_panel=SPEED
        ),
    ] = 8192,
    shard: Annotated[
        str | None,
        typer.Option(metavar="K/N", help="Only part K of N of the input.", rich_help_panel=SPEED),
    ] = None,
) -> None:
    """Answer texts: regard predict runs/g2p-1 attention."""
    from regard.cli.commands.predict import predict_command
    from regard.inference.prediction.output_lines import Form
    from regard.inference.prediction.predict_options import Wanted
    from regard.tasks.values import Request

    _check_asked(texts, input, "answer")
    search = {
        **{"kind": "sample" if sample else None, "beam": beam, "alpha": alpha},
        **{"normalise": normalise, "coverage": coverage, "stop": stop, "groups": groups},
        **{"diversity": diversity, "min_length": min_length, "max_length": max_length},
        **{"no_repeat": no_repeat, "temperature": temperature, "top_k": top_k, "top_p": top_p},
        **{"min_p": min_p, "length": length, "seed": seed, "threshold": threshold},
    }
    wanted = Wanted(
        model=model,
        texts=tuple(texts or ()),
        input=input or "-",
        input_json=input_json,
        output=output,
        form=Form(nbest, json_lines, symbols, alignments, alternatives),
        request=Request(prefix, tuple(must or ()), tuple(ban or ())),
        search=search,
        settings=tuple(settings or ()),
        others=tuple(others or ()),
        engine=engine,
        quantize=quantize,
        shortlist=shortlist_file or shortlist,
        batch_size=batch_size,
        batch_tokens=batch_tokens,
        columns=(source_column, target_column),
        shard=shard,
        force=force,
    )
    predict_command(wanted)


@app.command()
def score(
    model: Model,
    texts: Texts = None,
    input: Annotated[
        str | None,
        typer.Option(help="File with one text a line, or source, tab, target; - stdin."),
    ] = None,
    source: SourceFile = None,
    target: TargetFile = None,
    batch_size: BatchSize = 64,
    json_lines: Json = False,
    debug: Debug = False,
) -> None:
    """Say how probable texts, or given answers, are: regard score runs/novel-1 "a text"."""
    from regard.cli.commands.score import score_command

    if (source is None) != (target is None):
        raise UserError("--source and --target go together")
    if source and (texts or input):
        raise UserError("give --source and --target, or texts, or --input; not several")
    if not source:
        _check_asked(texts, input, "score")
    score_command(model, texts or [], input or "-", (source, target), json_lines, batch_size)
