"""Options shared by several commands."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.core.errors import UserError

SPEED = "Model, speed and memory"
RESCORING = "Rescoring"


def check_model_folder(model: str) -> str:
    """Return the path of a model, or raise UserError if it does not exist.

    Options are checked before anything slow is imported.
    """
    if not Path(model).exists():
        from regard.storage.model_folder import not_a_model_message

        raise UserError(not_a_model_message(Path(model)))
    return model


def check_model_folders(models: list[str]) -> list[str]:
    """Return paths or NAME=FOLDER of models, or raise UserError if one does not exist."""
    for model in models:
        check_model_folder(model if Path(model).exists() else model.partition("=")[2] or model)
    return models


def check_file(path: str | None) -> str | None:
    """Return the path of a data file, or raise UserError if it looks like one but is missing."""
    if path and "." in path and not Path(path).exists():
        from regard.data.reading.lines import missing_file

        raise UserError(missing_file(path))
    return path


def check_budget(text: str | None) -> str | None:
    """Return a duration, or raise UserError if it has no unit."""
    if text and text.strip().replace(".", "", 1).isdigit():
        raise UserError(
            f"--budget {text}: seconds or minutes?", help=f"add a unit: {text}s, {text}m or {text}h"
        )
    return text


Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback on errors.")]
Beam = Annotated[int | None, typer.Option(min=1, help="Beam size (1 = greedy search).")]
BatchSize = Annotated[
    int, typer.Option(min=1, help="Examples per batch (does not affect results).")
]
Quantize = Annotated[
    str | None,
    typer.Option(
        metavar="int8", help="Use int8 weights (CPU only): a quarter of the memory, not faster."
    ),
]
EngineName = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="Inference engine: torch, ctranslate2, onnx, or auto (benchmark and pick the "
        "fastest).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")]
AllMetrics = Annotated[
    bool, typer.Option("--all", help="Show all metrics, not only those in use for the task.")
]
SourceFile = Annotated[
    str | None,
    typer.Option(
        "--source", help="Source file, one example per line, or images (IDX).", callback=check_file
    ),
]
TargetFile = Annotated[
    str | None,
    typer.Option(
        "--target", help="Target file, one example per line, or labels (IDX).", callback=check_file
    ),
]
SourceColumn = Annotated[
    str | None, typer.Option(help="Source column, by 1-based index or header name.")
]
TargetColumn = Annotated[
    str | None, typer.Option(help="Target column, by 1-based index or header name.")
]
SplitColumn = Annotated[
    str | None,
    typer.Option(
        help="Column with the split of each row (train, dev), by 1-based index or header name."
    ),
]
Split = Annotated[
    str | None, typer.Option(help="Use only the rows with this split in --split-column.")
]
IdColumn = Annotated[
    str | None,
    typer.Option(help="Column with the names of graph nodes, by 1-based index or header name."),
]
EdgesFile = Annotated[
    str | None,
    typer.Option(
        "--edges",
        help="Edges of a graph whose nodes are the rows of DATA: two node names per line, and "
        "optionally a relation.",
        callback=check_file,
    ),
]
SpeakerColumn = Annotated[
    str | None,
    typer.Option(help="Column with the speaker of each sound, by 1-based index or header name."),
]
GraphColumn = Annotated[
    str | None,
    typer.Option(help="Column with the graph of each node, if DATA has several graphs."),
]
TaskName = Annotated[
    str | None,
    typer.Option(
        "--task",
        help="Task: transduce (sequence to sequence, default), tag, classify, regress, "
        "language-model.",
    ),
]
Dev = Annotated[
    str | None,
    typer.Option(help="Dev set file (default: hold out part of the training data)."),
]
DevSource = Annotated[str | None, typer.Option(help="Source side of the dev set, as for --source.")]
DevTarget = Annotated[str | None, typer.Option(help="Target side of the dev set, as for --target.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a setting, e.g. training.lr=3e-4 (repeatable).",
    ),
]
Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="Run folder or exported model.", callback=check_model_folder
    ),
]
DataFile = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="Data file (TSV, CSV, JSONL, CoNLL-U, text; optionally .gz), images (folder by class, "
        'NPZ), "-" for stdin, or a built-in dataset (g2p, reverse, copy, sort, dates, '
        "scenes, listops, listops-long, communities).",
        callback=check_file,
    ),
]
Texts = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TEXT]...",
        help="Input text, in the same format as a line of an input file.",
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(help="Multi-label: minimum probability for a label to be predicted."),
]
Rescore = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="Rank the hypotheses by the log probabilities of this model: a transducer, or a "
        "language model of targets.",
        rich_help_panel=RESCORING,
    ),
]
RescoreWeight = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="Weight of --rescore; the model's own log probabilities have the rest. Default: 0.3 "
        "for a language model, otherwise 1.",
        rich_help_panel=RESCORING,
    ),
]
Short = Annotated[
    bool,
    typer.Option(
        "--shortlist",
        help="Restrict the output layer to the shortlist (see `regard shortlist`).",
        rich_help_panel=SPEED,
    ),
]
ShortFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Use this shortlist file instead of the model's own.",
        rich_help_panel=SPEED,
    ),
]


def check_texts(texts: list[str] | None, input: str | None, verb: str) -> None:
    """Raise UserError if texts and input are combined, or neither is set and stdin is a terminal.

    verb: what the command does with texts, shown in the message.
    """
    if texts and input:
        raise UserError("texts and --input cannot be combined")
    if not texts and input is None and sys.stdin.isatty():
        raise UserError(
            f"nothing to {verb}", help="pass texts or --input FILE, or pipe lines to stdin"
        )
