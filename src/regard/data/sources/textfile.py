"""A large text file: checked and hashed once, unzipped once, cut into blocks of whole lines."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from regard.core.cache import Facts, cached, load_facts, make_key, save_facts
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
    readable_os_errors,
)

BLOCK = 1 << 17  # bytes, up to the next line end
PART = 1 << 22  # bytes read at a time where lines do not matter
SETTLED = 2.0  # seconds a file must be old: one that changes in the same instant looks the same


@dataclass(frozen=True)
class TextFile:
    """A file of valid UTF-8. path: where its text lies, unzipped."""

    path: str
    digest: str
    size: int
    lines: int
    newlines: int
    returns: int
    marked: bool  # it begins with a byte order mark


def text_size(path: str) -> int:
    """How many bytes of text a file holds, at least; of gzip what its last bytes say."""
    if path == "-" or not Path(path).is_file():
        return 0
    count = Path(path).stat().st_size
    with readable_os_errors(path), open(path, "rb") as file:
        if file.read(2) != GZIP or count < 18:
            return count
        file.seek(-4, os.SEEK_END)
        return max(count, struct.unpack("<I", file.read(4))[0])


def open_text(path: str) -> TextFile:
    """The text of a file; an error tells where it is none. A file seen before is not read."""
    status = os.stat(path)
    name = os.path.abspath(path)
    mark = [status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns]
    known = load_facts(name)
    facts: Facts = known.get("facts", {}) if known.get("mark") == mark else {}
    with open(path, "rb") as file:
        zipped = file.read(2) == GZIP
    if zipped:
        key = facts.get("key") or _hash(path)
        folder, plain = cached("text", key, lambda folder: _check(path, folder / "text"))
        facts, text = {"key": key}, {**plain, "path": str(folder / "text")}
    else:
        facts = text = facts or _check(path)
    if known.get("mark") != mark and time.time() - status.st_mtime > SETTLED:
        save_facts(name, {"mark": mark, "facts": facts})
    return TextFile(**{"path": path, **text})


def _hash(path: str) -> str:
    mark = hashlib.blake2b(digest_size=16)
    with readable_os_errors(path), open(path, "rb") as file:
        while data := file.read(PART):
            mark.update(data)
    return make_key(mark.hexdigest())


def _check(path: str, copy: Path | None = None) -> Facts:
    """Reads a file once: its digest, its lines, an error if it is no text; and copies the text."""
    mark = hashlib.blake2b(digest_size=16)
    count, newlines, returns, bad = 0, 0, 0, 0
    problems: list[tuple[int, str]] = []
    filled, last, first = False, b"", b""
    with (
        readable_os_errors(path),
        open_bytes(path) as stream,
        ProgressBar(f"reading {path}", text_size(path)) as bar,
    ):
        out = open(copy, "wb") if copy else None  # noqa: SIM115 -- closed below
        while data := stream.read(PART):
            data += stream.readline()
            check_text(path, data, newlines + 1)
            mark.update(data)
            try:
                text = data.decode()
                filled = filled or bool(text.removeprefix(BOM).strip())
            except UnicodeDecodeError:
                found = list(bad_lines(data, newlines + 1))
                problems, bad = [*problems, *found][:MAX_SHOWN], bad + len(found)
            if out:
                out.write(data)
            first, last, count = first or data[:3], data[-1:], count + len(data)
            newlines, returns = newlines + data.count(b"\n"), returns + data.count(b"\r")
            bar.advance(len(data))
        if out:
            out.close()
    raise_bad_lines(path, problems, CONVERT.format(path), bad)
    check_not_blank(path, filled)
    lines = newlines + (last != b"\n")
    found_text = TextFile(
        "", mark.hexdigest(), count, lines, newlines, returns, first == BOM.encode()
    )
    return {name: value for name, value in asdict(found_text).items() if name != "path"}


Raw = tuple[int, bytes]  # the place in the file, and what is there


def raw_blocks(files: Sequence[TextFile]) -> Iterator[list[Raw]]:
    """Blocks of whole lines, as many lines of each file."""
    places = [_begin(file) for file in files]
    with contextlib.ExitStack() as stack:
        lead, *others = [stack.enter_context(_open(file)) for file in files]
        while data := lead.read(BLOCK):
            data += lead.readline()
            lines = data.count(b"\n") + (not data.endswith(b"\n"))
            found = [data, *(b"".join(itertools.islice(stream, lines)) for stream in others)]
            yield list(zip(places, found, strict=True))
            places = [place + len(part) for place, part in zip(places, found, strict=True)]


def _begin(file: TextFile) -> int:
    return len(BOM.encode()) if file.marked else 0


def _open(file: TextFile) -> BinaryIO:
    stream = open(file.path, "rb")  # noqa: SIM115 -- the caller closes it
    stream.seek(_begin(file))
    return stream
