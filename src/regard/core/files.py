"""Reading and writing small files so that a crash never leaves half of one."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from regard.core.errors import UserError


def write_text(path: Path, text: str) -> None:
    """Writes the whole file or leaves the old one."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Writes the whole file or leaves the old one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with open(beside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UserError(f"{path}: cannot be written: {error.strerror}") from error
        raise


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON file, whole or not at all."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=0) + "\n")


def read_json(path: Path) -> Any:
    """What a JSON file holds."""
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; the model folder is not complete") from None
    except (ValueError, OSError) as error:
        raise UserError(f"{path}: cannot be read, the model folder is damaged: {error}") from error


def read_facts(path: Path, *names: str) -> list[Any]:
    """The values under these names in a JSON file."""
    facts = read_json(path)
    for name in names:
        if not isinstance(facts, dict) or name not in facts:
            raise UserError(f"{path}: damaged, {name!r} is missing; copy the model folder anew")
    return [facts[name] for name in names]
