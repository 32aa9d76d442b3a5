"""The folder of an exported model: the files that regard adds to those of the engine."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regard.core.errors import UserError
from regard.core.files import read_fields, read_object, write_json
from regard.core.version import __version__
from regard.storage.output_folder import BASELINES

FORMAT_VERSION = 1
EXPORT_FILE = "export.json"
# from the run folder
COPIED_FILES = ("config.yaml", "run.json", "version.txt", "vocabulary", BASELINES)


def check_out(out: Path, force: bool) -> None:
    """Raise UserError if `out` exists. With force, raise it only if `out` is not an export."""
    if out.exists() and not force:
        raise UserError(f"{out}: already exists", help="use --force, or choose another --out")
    if out.exists() and not (out / EXPORT_FILE).is_file():
        raise UserError(
            f"{out}: not an exported model; --force only overwrites exports",
            help="choose another --out",
        )


@contextlib.contextmanager
def atomic_folder(out: Path, force: bool) -> Iterator[Path]:
    """Yield a temporary folder that becomes `out` on success and is deleted on failure."""
    check_out(out, force)
    new, old = (out.with_name(f".{out.name}.{os.getpid()}.{end}") for end in ("new", "old"))
    try:
        new.mkdir(parents=True)
        yield new
        if out.exists():
            os.replace(out, old)
        os.replace(new, out)
    except OSError as error:
        raise UserError(f"{out}: cannot write: {error.strerror or error}") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def write_export(run: Path, folder: Path, metadata: dict[str, Any]) -> dict[str, Any]:
    """Copy the files that loading needs from the run folder; write and return the metadata."""
    for name in COPIED_FILES:
        path = run / name
        if path.is_dir():
            shutil.copytree(path, folder / name, dirs_exist_ok=True)
        elif path.exists():
            shutil.copyfile(path, folder / name)
    metadata = {"format": FORMAT_VERSION, "version": __version__, **metadata}
    write_json(folder / EXPORT_FILE, metadata)
    return metadata


def read_export(folder: Path) -> dict[str, Any] | None:
    """Return the metadata of an exported model, or None if the folder is not an export."""
    path = folder / EXPORT_FILE
    if not path.exists():
        return None
    version, _ = read_fields(path, format=int, engine=str)
    metadata = read_object(path)
    if version > FORMAT_VERSION:
        raise UserError(
            f"{folder}: exported by a newer version, regard {metadata.get('version')}",
            help="pip install -U regard",
        )
    return metadata
