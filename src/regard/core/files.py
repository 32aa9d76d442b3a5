"""Functions to read small files and to write them atomically."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from regard.core.errors import UserError


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file atomically: on failure the old file stays."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically: on failure the old file stays."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UserError(f"{path}: cannot write: {error.strerror}") from error
        raise


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=0) + "\n")


def read_json(path: Path) -> Any:
    """Return the content of a JSON file of a model folder; raise UserError if it is unreadable."""
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; the model folder is incomplete") from None
    except (ValueError, OSError, RecursionError) as error:
        raise UserError(f"{path}: cannot read; the model folder is corrupted: {error}") from error


def read_json_lines(path: Path) -> list[Any]:
    r"""Return the values of a JSON-lines file of a model folder; [] if it does not exist.

    Only \n ends a line: JSON strings may contain other line separators, such as U+2028. Raise
    UserError if a line is unreadable.
    """
    values = []
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path} line {number}: corrupted: {error}") from error
    return values


def read_fields(path: Path, *names: str) -> list[Any]:
    """Return the values of these fields of a JSON file; raise UserError if one is missing."""
    fields = read_json(path)
    for name in names:
        if not isinstance(fields, dict) or name not in fields:
            raise UserError(
                f"{path}: corrupted: field {name!r} is missing", help="copy the model folder again"
            )
    return [fields[name] for name in names]
