"""Options that several commands have."""

from typing import Annotated

import typer

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
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Changes a setting.")
]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="A run folder.")]
DATA = (
    "TSV, CSV, JSONL, CoNLL-U or text file (also .gz), - for stdin, or g2p, reverse, copy, sort, "
    "dates."
)
