"""The command `regard import`."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.command_options import Debug
from regard.core.errors import info, note


def import_model(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Folder with a Hugging Face MarianMT checkpoint."),
    ],
    out: Annotated[Path, typer.Option(metavar="RUN", help="Run folder to create.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing run.")] = False,
    debug: Debug = False,
) -> None:
    """Convert a MarianMT checkpoint into a run folder.

    regard import opus-mt-en-de --out runs/en-de
    """
    from regard.exchange.importing.imported_folder import check_out, write_imported
    from regard.exchange.importing.marian_model import import_marian
    from regard.storage.output_folder import delete_run, run_lock

    check_out(out, force)
    imported = import_marian(folder)
    with run_lock(out):
        delete_run(out)
        write_imported(imported, folder, out)
    sizes = [f"{len(v):,}" for v in (imported.task.source_tokenizer(), imported.task.target)]
    count = sum(weight.numel() for weight in imported.model.parameters())
    info(f"{count:,} parameters, {' and '.join(sizes)} tokens")
    for text in imported.notes:
        note(text)
    info(f"next: regard predict {out} TEXT")
    print(out)
