"""The command `regard export`."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.command_options import Debug, Model
from regard.core.errors import UserError, info


def export(
    model: Model,
    to: Annotated[
        str,
        typer.Option(
            metavar="ENGINE",
            help="Target format: ctranslate2, onnx or regard (int8 weights for torch).",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to create.")],
    quantize: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="Quantize weights: int8 (all formats); int16, float16, bfloat16 (ctranslate2).",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing export.")] = False,
    debug: Debug = False,
) -> None:
    """Export a model to CTranslate2, ONNX or int8.

    regard export runs/g2p-1 --to ctranslate2 --out g2p-ct2
    """
    from regard.core.formatting import size
    from regard.exchange.engine_choice import load_predictor
    from regard.exchange.export import EXPORTERS, export_model
    from regard.storage.export_folder import check_out, read_export

    if to not in EXPORTERS:
        raise UserError(f"--to {to}: expected one of {', '.join(EXPORTERS)}")
    check_out(out, force)  # before anything is read
    if Path(model).is_dir() and read_export(Path(model)) is not None:
        raise UserError(f"{model}: already exported; pass the original run folder")
    export_model(load_predictor(model), to, out, force, quantize=quantize)
    taken = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    info(f"exported: {out} ({size(taken)})")
    info(f"next: regard predict {out} TEXT")
    print(out)
