"""The folder of an exported model: what lies in it beside the engine's own files."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regard.core.errors import UserError
from regard.core.files import read_fields, read_json, write_json
from regard.core.version import __version__

FORMAT = 1
FACTS = "export.json"
KEPT = ("config.yaml", "run.json", "version.txt", "vocabulary")  # of a run folder


def check_out(out: Path, force: bool) -> None:
    """Refuses a place that is taken; by force only by what is no export."""
    if out.exists() and not force:
        raise UserError(f"{out}: exists; replace it (--force) or choose another --out")
    if out.exists() and not (out / FACTS).is_file():
        raise UserError(f"{out}: --force replaces only an exported model; choose another --out")


@contextlib.contextmanager
def fresh(out: Path, force: bool) -> Iterator[Path]:
    """A folder to write into, which becomes `out` when all went well and else goes away."""
    check_out(out, force)
    new, old = (out.with_name(f".{out.name}.{os.getpid()}.{end}") for end in ("new", "old"))
    try:
        new.mkdir(parents=True)
        yield new
        if out.exists():
            os.replace(out, old)
        os.replace(new, out)
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def write_export(run: Path, folder: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """Copies what `load` needs of the run folder, and writes the facts; all of them."""
    for name in KEPT:
        path = run / name
        if path.is_dir():
            shutil.copytree(path, folder / name, dirs_exist_ok=True)
        elif path.exists():
            shutil.copyfile(path, folder / name)
    facts = {"format": FORMAT, "version": __version__, **facts}
    write_json(folder / FACTS, facts)
    return facts


def read_export(folder: Path) -> dict[str, Any] | None:
    """The facts of an exported folder; None where it is none."""
    path = folder / FACTS
    if not path.is_file():
        return None
    form, _ = read_fields(path, "format", "engine")
    facts: dict[str, Any] = read_json(path)
    if not isinstance(form, int) or form > FORMAT:
        raise UserError(
            f"{folder}: exported by regard {facts.get('version')}, which is newer than this one; "
            "update with pip install -U regard"
        )
    return facts
