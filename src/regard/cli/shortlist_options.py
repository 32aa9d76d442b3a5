"""The command that makes a shortlist, and the options of those that use one."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.shared_options import (
    DATA,
    Debug,
    Model,
    SourceColumn,
    SourceFile,
    TargetColumn,
    TargetFile,
)

app = typer.Typer()
SPEED = "Model, speed and memory"

Short = Annotated[
    bool,
    typer.Option(
        "--shortlist",
        help="Look only at likely target symbols; see regard shortlist.",
        rich_help_panel=SPEED,
    ),
]
ShortFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The same, from another file.", rich_help_panel=SPEED),
]


@app.command()
def shortlist(
    model: Model,
    data: Annotated[str | None, typer.Argument(metavar="DATA", help=DATA)] = None,
    source: SourceFile = None,
    target: TargetFile = None,
    source_column: SourceColumn = None,
    target_column: TargetColumn = None,
    best: Annotated[int, typer.Option(min=1, help="Target symbols of each source symbol.")] = 50,
    frequent: Annotated[int, typer.Option(min=0, help="Target symbols of every sentence.")] = 100,
    out: Annotated[
        Path | None, typer.Option(help="File; else shortlist.safetensors of the model.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Learn which target symbols are likely for a source: predict --shortlist is then faster."""
    from regard.cli.commands.make_shortlist import shortlist_command
    from regard.data.sources.open import Place

    place = Place(data, source, target, source_column, target_column)
    shortlist_command(model, place, best, frequent, out)
