"""The command that brings models in."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.command_options import Debug
from regard.core.errors import info, note


def import_model(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A MarianMT checkpoint of transformers.")
    ],
    out: Annotated[Path, typer.Option(metavar="RUN", help="The run folder that is written.")],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing run.")] = False,
    debug: Debug = False,
) -> None:
    """Make a run folder of a MarianMT checkpoint: regard import opus-mt-en-de --out runs/en-de."""
    from regard.exchange.importing.imported_folder import check_out, write_imported
    from regard.exchange.importing.marian_model import import_marian
    from regard.storage.taken_folder import clear, held

    check_out(out, force)
    imported = import_marian(folder)
    with held(out):
        clear(out)
        write_imported(imported, folder, out)
    sizes = [f"{len(v):,}" for v in (imported.task.source_tokenizer(), imported.task.target)]
    count = sum(weight.numel() for weight in imported.model.parameters())
    info(f"{count:,} parameters, {' and '.join(sizes)} tokens")
    for text in imported.notes:
        note(text)
    info(f"next: regard predict {out} TEXT")
    print(out)
