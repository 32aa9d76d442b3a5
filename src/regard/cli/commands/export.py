"""What `regard export` does, without the parsing of its words."""

from pathlib import Path

from regard.core.errors import UserError, say
from regard.core.formatting import size
from regard.estimators import load
from regard.exchange.export import EXPORTERS, export_model
from regard.storage.export_folder import check_out, read_export


def export_command(model: str, to: str, out: Path, quantize: str | None, force: bool) -> None:
    """Exports a model and prints the folder."""
    if to not in EXPORTERS:
        raise UserError(f"--to: {', '.join(EXPORTERS)} expected, {to!r} found")
    check_out(out, force)  # before anything is read
    if Path(model).is_dir() and read_export(Path(model)) is not None:
        raise UserError(f"{model}: exported already; give the folder of the run it was made from")
    export_model(load(model), to, out, force, quantize=quantize)
    taken = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    say(f"use it: regard predict {out} TEXT   ({size(taken)})")
    print(out)
