"""Functions to read small files and to write them atomically."""

import contextlib
import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

from regard.core.errors import UserError
from regard.core.formatting import size

MAX_SIZE = 64 * 1024**2  # bytes of a vocabulary or another file that is read at once
MAX_DIGITS = 20  # characters of an integer
MAX_SHOWN = 80  # characters of a value in a message


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


def read_bytes(path: Path, max_size: int = MAX_SIZE) -> bytes:
    """Return the content of a regular file; raise OSError if it is another thing or too large.

    A model folder may come from anywhere. A pipe would block, a device would never end.
    """
    check_regular(path)
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(handle, "rb") as file:
        status = os.fstat(handle)
        check_regular(path, status.st_mode)
        content = b"" if status.st_size > max_size else file.read(max_size + 1)
    if max(status.st_size, len(content)) > max_size:
        raise OSError(errno.EFBIG, f"expected at most {size(max_size)}", str(path))
    return content


def check_regular(path: Path, mode: int | None = None) -> None:
    """Raise OSError unless the path is a regular file or a link to one. mode: of the open file."""
    mode = path.stat().st_mode if mode is None else mode
    if stat.S_ISREG(mode):
        return
    kinds = {stat.S_IFIFO: "a named pipe", stat.S_IFDIR: "a folder", stat.S_IFSOCK: "a socket"}
    found = kinds.get(stat.S_IFMT(mode), "a device")
    raise OSError(errno.EINVAL, f"expected a regular file, found {found}", str(path))


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; raise ValueError if it is invalid or nested too deeply."""
    try:
        return json.loads(text, parse_int=_parse_int)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_json(path: Path) -> Any:
    """Return the content of a JSON file of a model folder; raise UserError if it is unreadable."""
    try:
        return parse_json(read_bytes(path).decode("utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; the model folder is incomplete") from None
    except (ValueError, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: cannot read; the model folder is corrupted: {reason}") from error


def read_json_lines(path: Path, max_size: int = MAX_SIZE) -> list[Any]:
    r"""Return the values of a JSON-lines file of a model folder; [] if it does not exist.

    Only \n ends a line: JSON strings may contain other line separators, such as U+2028. Raise
    UserError if the file or a line is unreadable.
    """
    values = []
    try:
        lines = read_bytes(path, max_size).split(b"\n") if path.exists() else []
    except OSError as error:
        raise corrupted(path, error.strerror or str(error)) from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values.append(parse_json(line))
        except ValueError as error:
            raise UserError(f"{path} line {number}: corrupted: {error}") from error
    return values


def read_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file of a model folder; raise UserError if it is not one."""
    found = read_json(path)
    if not isinstance(found, dict):
        raise corrupted(path, f"expected an object, found {shorten(found)}")
    return found


def read_fields(path: Path, **types: Any) -> list[Any]:
    """Return the values of these fields of a JSON file.

    types: the type of each field by name, such as `list[str]`. Raise UserError if a field is
    missing or has another type.
    """
    from pydantic import TypeAdapter, ValidationError

    fields, values = read_json(path), []
    for name, expected in types.items():
        if not isinstance(fields, dict) or name not in fields:
            raise corrupted(path, f"field {name!r} is missing")
        try:
            values.append(TypeAdapter(expected).validate_python(fields[name], strict=True))
        except ValidationError as error:
            first = error.errors()[0]
            where = "".join(f"[{at}]" for at in first["loc"] if isinstance(at, int))
            found = shorten(first["input"])
            reason = f"field {name!r}{where}: {first['msg']}, found {found}"
            raise corrupted(path, reason) from None
    return values


def corrupted(path: Path, reason: str) -> UserError:
    """Return the error for a file of a model folder with invalid content."""
    return UserError(f"{path}: corrupted: {reason}", help="copy the model folder again")


def shorten(value: object) -> str:
    """Return a value as text for a message, at most 80 characters."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def _parse_int(text: str) -> int:
    """Return an integer of JSON; raise ValueError if it has more than 64 bits."""
    if len(text) > MAX_DIGITS or not -(2**63) <= (value := int(text)) < 2**63:
        raise ValueError(f"integer of {len(text)} digits: expected at most 64 bits")
    return value
