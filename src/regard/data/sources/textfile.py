"""Large text files: checked and hashed once, decompressed once, split into blocks of lines."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from regard.core.cache import Metadata, cached, load_metadata, make_key, save_metadata
from regard.core.progress import ProgressBar
from regard.data.reading.lines import (
    BOM,
    CONVERT,
    GZIP,
    MAX_SHOWN,
    bad_lines,
    check_not_blank,
    check_text,
    open_bytes,
    raise_bad_lines,
    read_line,
    readable_os_errors,
)

BLOCK = 1 << 17  # bytes per block, extended to the next line end
CHUNK = 1 << 22  # bytes read at once when hashing or checking
MIN_AGE = 2.0  # seconds; a file modified more recently may change without a new timestamp


@dataclass(frozen=True)
class TextFile:
    """A file of valid UTF-8.

    path: path of the decompressed text. newlines, returns: number of LF and CR characters.
    """

    path: str
    digest: str
    size: int
    lines: int
    newlines: int
    returns: int
    has_bom: bool


def text_size(path: str, limit: int) -> int:
    """Return the size of a text in bytes, uncompressed; 0 for stdin and other pipes.

    gzip is decompressed to measure it, up to a little more than `limit` bytes. The size in its
    trailer is modulo 4 GB, and of the last member only.
    """
    if path == "-" or not Path(path).is_file():
        return 0
    with readable_os_errors(path), open_bytes(path) as stream:
        if _file_of(stream) is stream:
            return os.path.getsize(path)
        count = 0
        while count <= limit and (data := stream.read(CHUNK)):
            count += len(data)
    return count


def _file_of(stream: BinaryIO) -> BinaryIO:
    """Return the file that a gzip stream decompresses; other streams as they are."""
    file: BinaryIO = getattr(stream, "fileobj", stream)
    return file


def open_text(path: str) -> TextFile:
    """Return the checked and, if needed, decompressed text file; raise UserError if not text.

    The result is cached: an unchanged file is not read again.
    """
    status = os.stat(path)
    name = os.path.abspath(path)
    stamp = [status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns]
    known = load_metadata(name)
    metadata: Metadata = known.get("metadata", {}) if known.get("stamp") == stamp else {}
    with open(path, "rb") as file:
        zipped = file.read(2) == GZIP
    if zipped:
        key = metadata.get("key") or _hash(path)
        folder, plain = cached("text", key, lambda folder: _check(path, folder / "text"))
        metadata, text = {"key": key}, {**plain, "path": str(folder / "text")}
    else:
        metadata = text = metadata or _check(path)
    if known.get("stamp") != stamp and time.time() - status.st_mtime > MIN_AGE:
        save_metadata(name, {"stamp": stamp, "metadata": metadata})
    return TextFile(**{"path": path, **text})


def _hash(path: str) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with readable_os_errors(path), open(path, "rb") as file:
        while data := file.read(CHUNK):
            digest.update(data)
    return make_key(digest.hexdigest())


def _check(path: str, copy: Path | None = None) -> Metadata:
    """Read a file once and return the fields of its TextFile, except `path`.

    Raise UserError if it is not text. copy: path for the decompressed text, if needed.
    """
    digest = hashlib.blake2b(digest_size=16)
    count, newlines, returns, bad = 0, 0, 0, 0
    problems: list[tuple[int, str]] = []
    has_text, last, first = False, b"", b""
    with (
        readable_os_errors(path),
        open_bytes(path) as stream,
        ProgressBar(f"reading {path}", os.path.getsize(path)) as bar,
    ):
        file = _file_of(stream)
        out = open(copy, "wb") if copy else None  # noqa: SIM115 -- closed below
        while data := stream.read(CHUNK):
            check_text(path, data, newlines + 1)  # before a line that may never end
            data += read_line(path, stream, newlines + 1 + data.count(b"\n"))
            check_text(path, data, newlines + 1)
            digest.update(data)
            try:
                text = data.decode()
                has_text = has_text or bool(text.removeprefix(BOM).strip())
            except UnicodeDecodeError:
                found = list(bad_lines(data, newlines + 1))
                problems, bad = [*problems, *found][:MAX_SHOWN], bad + len(found)
            if out:
                out.write(data)
            first, last, count = first or data[:3], data[-1:], count + len(data)
            newlines, returns = newlines + data.count(b"\n"), returns + data.count(b"\r")
            bar.advance(file.tell() - bar.done)  # compressed bytes for gzip
        if out:
            out.close()
    raise_bad_lines(path, problems, CONVERT.format(path), bad)
    check_not_blank(path, has_text)
    lines = newlines + (last != b"\n")
    found_text = TextFile(
        "", digest.hexdigest(), count, lines, newlines, returns, first == BOM.encode()
    )
    return {name: value for name, value in asdict(found_text).items() if name != "path"}


Raw = tuple[int, bytes]  # offset in the file, and content


def raw_blocks(files: Sequence[TextFile]) -> Iterator[list[Raw]]:
    """Yield (offset, bytes) per file for each block of complete lines, equally many per file."""
    offsets = [_text_offset(file) for file in files]
    with contextlib.ExitStack() as stack:
        lead, *others = [stack.enter_context(_open(file)) for file in files]
        while data := lead.read(BLOCK):
            data += lead.readline()
            lines = data.count(b"\n") + (not data.endswith(b"\n"))
            found = [data, *(b"".join(itertools.islice(stream, lines)) for stream in others)]
            yield list(zip(offsets, found, strict=True))
            offsets = [at + len(part) for at, part in zip(offsets, found, strict=True)]


def _text_offset(file: TextFile) -> int:
    return len(BOM.encode()) if file.has_bom else 0


def _open(file: TextFile) -> BinaryIO:
    stream = open(file.path, "rb")  # noqa: SIM115 -- the caller closes it
    stream.seek(_text_offset(file))
    return stream
