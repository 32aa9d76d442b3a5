"""Commands for models that are trained: export."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.shared_options import Debug, Model

app = typer.Typer()


@app.command()
def export(
    model: Model,
    to: Annotated[str, typer.Option(metavar="ENGINE", help="ctranslate2, onnx or regard.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the export goes.")],
    quantize: Annotated[
        str | None,
        typer.Option(
            metavar="KIND", help="Round weights: int8; ctranslate2 also int16 float16 bfloat16."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier export.")] = False,
    debug: Debug = False,
) -> None:
    """Write a model for another engine: regard export runs/g2p-1 --to ctranslate2 --out g2p-ct2."""
    from regard.cli.commands.export import export_command

    export_command(model, to, out, quantize, force)
