"""Read UTF-8 text, plain or gzip, with a clear error if a file is not readable or not text."""

from __future__ import annotations

import difflib
import gzip
import io
import itertools
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from regard.core.errors import UserError
from regard.core.formatting import size
from regard.core.limits import memory_limit

MAX_SHOWN = 10  # bad lines shown in full
MAX_LINE = 1 << 24  # bytes of a line of a stream or of a large file
BLOCK = 1 << 20  # bytes read at once
GZIP = b"\x1f\x8b"
BOM = "\ufeff"
PAIRS = "pairs of source and target"
CONVERT = "if the file is Latin-1, convert it: iconv -f latin1 -t utf-8 {0} > new-file"


def raise_bad_lines(
    path: str, problems: list[tuple[int, str]], help: str = "", count: int | None = None
) -> None:
    """Raise one UserError for all bad lines, if any, with the first ten in full.

    problems: line and message. count: total number, if `problems` has only the first bad lines.
    """
    if not problems:
        return
    count = len(problems) if count is None else count
    report = [f"{path} line {line}: {problem}" for line, problem in problems[:MAX_SHOWN]]
    if count > MAX_SHOWN:
        report.append(f"and {count - MAX_SHOWN:,} more; {count:,} bad lines in total")
    raise UserError("\n".join(report), help=help)


def read_text(path: str, expected: str = PAIRS) -> tuple[str, list[str]]:
    """Return the text of a file or of stdin (`-`), and notes for the user.

    expected: what the file should contain, for the error if it is empty.
    """
    shown = show_path(path)
    with readable_os_errors(shown), open_bytes(path) as stream:
        data = _read_all(shown, stream)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise_bad_lines(shown, list(bad_lines(bytes(data))), CONVERT.format(shown))
        raise
    check_not_blank(shown, bool(text.removeprefix(BOM).strip()), expected)
    notes = []
    if len(data) > (limit := memory_limit()):
        notes.append(
            f"{size(len(data))} of text, read into several times that much memory "
            f"(above {size(limit)}, only pairs in TSV, CSV without quotation marks, JSONL and "
            "aligned files are streamed)"
        )
    if text.startswith(BOM):
        return text[1:], ["byte order mark removed", *notes]
    return text, notes


def _read_all(path: str, stream: BinaryIO) -> bytearray:
    """Return all bytes of a stream; raise UserError at the first block that is not text."""
    data, newlines = bytearray(), 0
    while block := stream.read(BLOCK):
        check_text(path, block, newlines + 1)
        data += block
        newlines += block.count(b"\n")
    return data


def check_not_blank(path: str, has_text: bool, expected: str = PAIRS) -> None:
    """Raise UserError unless the file has text other than whitespace."""
    if not has_text:
        raise UserError(f"{path}: the file is empty: expected {expected}")


def split_lines(path: str, text: str, notes: list[str]) -> list[str]:
    r"""Return the lines of a text, split on \n or \r\n only; append a note on \r\n."""
    check_line_ends(path, text.count("\n"), text.count("\r"))
    lines, returns = split_line_ends(text)
    notes += note_crlf(returns)
    return lines


def split_line_ends(text: str) -> tuple[list[str], int]:
    r"""Return the lines of a text without \n or \r\n, and how many end in \r\n."""
    lines = text.removesuffix("\n").split("\n")
    if "\r" not in text:
        return lines, 0
    num_crlf = sum(line.endswith("\r") for line in lines)
    return [line.removesuffix("\r") for line in lines], num_crlf


def note_crlf(count: int) -> list[str]:
    """Return a note on Windows line ends, if any."""
    return [f"Windows line ends (CR LF) removed from {count:,} lines"] if count else []


def note_blank(count: int) -> list[str]:
    """Return a note on blank lines, if any."""
    return [f"skipped: {count:,} blank lines"] if count else []


def note_files(
    shown: Sequence[str], notes: Sequence[list[str]], returns: Sequence[int]
) -> list[str]:
    """Return the notes of one or two files as one list. returns: CR LF line ends per file."""
    if len(shown) == 1:
        return notes[0]
    known = zip(shown, notes, map(note_crlf, returns), strict=True)
    each = [f"{path}: {note}" for path, some, more in known for note in [*some, *more]]
    return ["read as two aligned files", *each]


def check_line_ends(path: str, newlines: int, returns: int) -> None:
    """Raise UserError if the lines of a text end in CR only. returns: number of CR."""
    if not newlines and returns > 1:
        raise UserError(
            f"{path}: lines end in CR only (old Mac)",
            help=f"convert it: tr '\\r' '\\n' < {path} > new-file",
        )


def read_lines(path: str) -> Iterator[str]:
    r"""Yield the lines of a file or of stdin (`-`), each as soon as it is available.

    Lines are split on \n only; a trailing \r and a leading byte order mark are removed.
    """
    shown = show_path(path)
    with readable_os_errors(shown):
        stream = open_bytes(path)
    return _stream_lines(shown, stream)


def show_path(path: str) -> str:
    """Return the path as shown in messages."""
    return "standard input" if path == "-" else path


def stem(path: str) -> str:
    """Return the file name without folder and suffixes: 'train' for data/train.tsv.gz."""
    if path == "-":
        return "standard-input"
    name = Path(path).name.removesuffix(".gz")
    return Path(name).stem or name


def open_bytes(path: str) -> BinaryIO:
    """Open a file or stdin (`-`) for reading bytes; decompress gzip, detected by content."""
    if path == "-":
        stream = sys.stdin.buffer
        if not isinstance(stream, io.BufferedReader):
            stream = io.BufferedReader(cast(io.RawIOBase, stream))
    else:
        if not Path(path).exists():
            raise UserError(missing_file(path))
        if Path(path).is_dir():
            raise UserError(f"{path}: expected a file, found a folder")
        stream = open(path, "rb")  # noqa: SIM115 -- the caller closes it
    if stream.peek(2)[:2] == GZIP:
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream))
    return stream


def missing_file(path: str) -> str:
    """Return the message for a missing file, with a similar existing name if there is one."""
    folder = Path(path).parent
    if not folder.is_dir():
        return f"{path}: no such file; the folder {folder} does not exist"
    if Path(path).is_symlink():
        return f"{path}: broken link: {Path(path).readlink()} does not exist"
    names = sorted(entry.name for entry in folder.iterdir())
    near = difflib.get_close_matches(Path(path).name, names, n=1, cutoff=0.6)
    hint = f"; did you mean {folder / near[0]}?" if near else ""
    return f"{path}: no such file{hint}"


@contextmanager
def readable_os_errors(path: str) -> Iterator[None]:
    """Turn errors of reading a file inside the block into UserError."""
    try:
        yield
    except EOFError:
        raise UserError(f"{path}: truncated gzip file", help="copy or download it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UserError(
            f"{path}: corrupted gzip file ({error})", help="copy or download it again"
        ) from None
    except OSError as error:
        raise UserError(f"{path}: cannot read: {error.strerror or error}") from None


def _stream_lines(path: str, stream: BinaryIO) -> Iterator[str]:
    with readable_os_errors(path), stream:
        for number in itertools.count(1):
            if not (raw := read_line(path, stream, number)):
                return
            check_text(path, raw, number)
            try:
                line = raw.decode()
            except UnicodeDecodeError as error:
                raise_bad_lines(path, [(number, bad_byte(raw, error))], CONVERT.format(path))
            if number == 1:
                line = line.removeprefix(BOM)
            yield line.removesuffix("\n").removesuffix("\r")


def read_line(path: str, stream: BinaryIO, number: int) -> bytes:
    """Return the rest of a line, with its line end; raise UserError if it is too long.

    So an endless input without line ends does not fill the memory. number: line, for the message.
    """
    raw = stream.readline(MAX_LINE)
    if len(raw) == MAX_LINE and not raw.endswith(b"\n"):
        raise UserError(
            f"{path} line {number}: no line end within {size(MAX_LINE)}",
            help="split the text into lines",
        )
    return raw


def check_text(path: str, data: bytes, line: int = 1) -> None:
    """Raise UserError if the bytes are UTF-16 or binary. line: number of the first line."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UserError(
            f"{path}: expected UTF-8, found UTF-16",
            help=f"convert it: iconv -f utf-16 -t utf-8 {path} > new-file",
        )
    if b"\0" in data:
        line += data.count(b"\n", 0, data.index(b"\0"))
        kind = "a zip archive or a spreadsheet" if data.startswith(b"PK") else "a binary file"
        raise UserError(f"{path} line {line}: NUL byte: expected UTF-8 text, found {kind}")


def bad_lines(data: bytes, first: int = 1) -> Iterator[tuple[int, str]]:
    """Yield (line number, problem) for each line that is not UTF-8, numbered from `first`."""
    for number, raw in enumerate(data.split(b"\n"), first):
        try:
            raw.decode()
        except UnicodeDecodeError as error:
            yield number, bad_byte(raw, error)


def bad_byte(raw: bytes, error: UnicodeDecodeError) -> str:
    """Return the message for a line that is not UTF-8."""
    around = raw[max(0, error.start - 10) : error.start + 10].decode("latin1").strip()
    return (
        f"not UTF-8: byte 0x{raw[error.start]:02X} at position {error.start + 1} "
        f"(in Latin-1: {around!r})"
    )
