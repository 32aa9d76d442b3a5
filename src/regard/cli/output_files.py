"""Protection of existing files: a command overwrites only files of the kind that it writes."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from regard.core.errors import UserError

MAX_HEAD = 4096  # first bytes of a file, which show its kind
OVERWRITE = "choose another name, or overwrite it with --force"

Force = Annotated[
    bool, typer.Option("--force", help="Overwrite an existing file, even if it is of another kind.")
]


class FileKind(NamedTuple):
    """A kind of files that commands write. fits: whether the first bytes are of this kind."""

    name: str
    fits: Callable[[bytes], bool]


PAGE = FileKind(
    "a page of regard", lambda head: b'<meta name="generator" content="regard">' in head
)
INSPECTION = FileKind("an inspection in JSON", lambda head: head.startswith(b'{"format": '))
SHORTLIST = FileKind("a shortlist", lambda head: b'"target vocabulary"' in head)
PNG = FileKind("a PNG figure", lambda head: head.startswith(b"\x89PNG"))
SVG = FileKind("an SVG figure", lambda head: b"<svg" in head)
FIGURES = {".png": PNG, ".svg": SVG}


def check_overwrite(option: str, path: Path, kind: FileKind, force: bool) -> None:
    """Raise UserError if a file exists, is not empty and is of another kind, unless `force`."""
    if force or not path.is_file():
        return
    try:
        with open(path, "rb") as file:
            head = file.read(MAX_HEAD)
    except OSError as error:
        raise UserError(f"{option} {path}: cannot read: {error.strerror}") from error
    if head and not kind.fits(head):
        raise UserError(f"{option} {path}: the file exists and is not {kind.name}", help=OVERWRITE)
