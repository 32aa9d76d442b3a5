"""Options that several commands have."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.core.errors import UserError

SPEED = "Model, speed and memory"
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
Beam = Annotated[int | None, typer.Option(min=1, help="Hypotheses kept; 1 is greedy.")]
BatchSize = Annotated[int, typer.Option(min=1, help="Sentences at a time; changes no answer.")]
Quantize = Annotated[
    str | None,
    typer.Option(metavar="int8", help="Weights in int8: a quarter of the memory, on a CPU."),
]
EngineName = Annotated[
    str | None,
    typer.Option("--engine", help="torch, ctranslate2, onnx, or auto: the fastest of them."),
]
Json = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]
SourceFile = Annotated[str | None, typer.Option("--source", help="File of sources, one a line.")]
TargetFile = Annotated[str | None, typer.Option("--target", help="File of targets, one a line.")]
SourceColumn = Annotated[str | None, typer.Option(help="Column of the source: number or name.")]
TargetColumn = Annotated[str | None, typer.Option(help="Column of the target: number or name.")]
TaskName = Annotated[
    str | None,
    typer.Option("--task", help="transduce, tag, classify, regress or language-model."),
]
Dev = Annotated[str | None, typer.Option(help="Dev file; else a part is held back.")]
DevSource = Annotated[str | None, typer.Option(help="Dev sources, one a line.")]
DevTarget = Annotated[str | None, typer.Option(help="Dev targets, one a line.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Changes a setting.")
]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="A run folder.")]
DataFile = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="TSV, CSV, JSONL, CoNLL-U or text file (also .gz), - for stdin, or g2p, reverse, "
        "copy, sort, dates.",
    ),
]
Texts = Annotated[
    list[str] | None, typer.Argument(metavar="[TEXT]...", help="As a line of a file has it.")
]
Threshold = Annotated[float | None, typer.Option(help="Several labels: give from here.")]
Short = Annotated[
    bool,
    typer.Option(
        "--shortlist",
        help="Look only at likely target tokens; see regard shortlist.",
        rich_help_panel=SPEED,
    ),
]
ShortFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The same, from another file.", rich_help_panel=SPEED),
]


def check_texts(texts: list[str] | None, input: str | None, verb: str) -> None:
    """Texts come from one place, and a terminal is none."""
    if texts and input:
        raise UserError("give texts on the command line or --input, not both")
    if not texts and input is None and sys.stdin.isatty():
        raise UserError(f"nothing to {verb}: give texts, --input FILE, or pipe lines in")
