"""The run folder of an imported model."""

import datetime
from pathlib import Path

from regard.config.load import changed
from regard.core.errors import UserError
from regard.core.files import write_json, write_text
from regard.core.version import __version__
from regard.exchange.importing.marian_model import Imported
from regard.storage.output_folder import foreign_files
from regard.storage.run_files import FORMAT_VERSION
from regard.storage.weights import save_weights


def write_imported(imported: Imported, folder: Path, out: Path) -> None:
    """Write the run folder `out`, `run.json` last. folder: the checkpoint it was imported from."""
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / "version.txt", f"{__version__}\n")
    write_text(out / "config.yaml", imported.config.dump())
    imported.task.save(out)
    write_json(out / "settings.json", {"changed": changed(imported.config), "auto": []})
    save_weights(imported.model, out / "model.safetensors")
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    facts = {
        "name": out.name,
        "task": imported.config.task.kind,
        "metric": imported.task.metric,
        "parameters": sum(weight.numel() for weight in imported.model.parameters()),
        "format": FORMAT_VERSION,
        "version": __version__,
        "started": now,
        "imported": str(folder.resolve()),
    }
    write_json(out / "run.json", facts)


def check_out(out: Path, force: bool) -> None:
    """Raise UserError unless the folder is new, empty, or a run to overwrite by `force`."""
    if out.is_file():
        raise UserError(f"{out}: expected a folder, found a file")
    if not out.exists() or not any(out.iterdir()):
        return
    if not (out / "run.json").exists() or foreign_files(out):
        raise UserError(f"{out}: not empty and not a run folder; choose another --out")
    if not force:
        raise UserError(
            f"{out}: already contains a run; overwrite it with --force, or choose another --out"
        )
