"""The command that brings models in."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.shared_options import Debug

app = typer.Typer()


@app.command("import")
def import_model(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A MarianMT checkpoint of transformers.")
    ],
    out: Annotated[Path, typer.Option(metavar="RUN", help="The run folder that is written.")],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing run.")] = False,
    debug: Debug = False,
) -> None:
    """Make a run folder of a MarianMT checkpoint: regard import opus-mt-en-de --out runs/en-de."""
    from regard.cli.commands.import_model import import_command

    import_command(folder, out, force)
