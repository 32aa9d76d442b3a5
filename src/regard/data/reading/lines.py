"""From a path to lines of text: gzip, UTF-8, and words for every file that cannot be read."""

from __future__ import annotations

import difflib
import gzip
import io
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from regard.core.errors import UserError
from regard.core.formatting import size
from regard.core.limits import memory_limit

SHOWN = 10  # bad lines shown in full
GZIP = b"\x1f\x8b"
BOM = "\ufeff"
PAIRS = "pairs of source and target are"
CONVERT = (
    "UTF-8 is expected; if the file is Latin-1, convert it: iconv -f latin1 -t utf-8 {0} > new-file"
)


def raise_bad_lines(
    path: str, problems: list[tuple[int, str]], advice: str = "", count: int | None = None
) -> None:
    """Raises one error for all bad lines, the first ten in full; nothing if there are none.

    count: how many there are, where only the first ones are given.
    """
    if not problems:
        return
    count = len(problems) if count is None else count
    report = [f"{path} line {line}: {problem}" for line, problem in problems[:SHOWN]]
    if count > SHOWN:
        report.append(f"and {count - SHOWN:,} more; {count:,} bad lines in all")
    raise UserError("\n".join([*report, advice] if advice else report))


def read_text(path: str, expected: str = PAIRS) -> tuple[str, list[str]]:
    """The whole text of a file or of standard input (`-`), and notes on what was recognized."""
    shown = show_path(path)
    with readable_os_errors(shown), open_bytes(path) as stream:
        data = stream.read()
    check_text(shown, data)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise_bad_lines(shown, list(bad_lines(data)), CONVERT.format(shown))
        raise
    check_not_blank(shown, bool(text.removeprefix(BOM).strip()), expected)
    notes = []
    if len(data) > (limit := memory_limit()):
        notes.append(
            f"{size(len(data))} of text, read as a whole into several times that much memory "
            f"(above {size(limit)} only pairs in plain or gzip TSV, CSV without quotation marks, "
            "JSONL and aligned files are read in pieces)"
        )
    if text.startswith(BOM):
        return text[1:], ["byte order mark removed", *notes]
    return text, notes


def check_not_blank(path: str, filled: bool, expected: str = PAIRS) -> None:
    """Raises an error for a text that is nothing but white space."""
    if not filled:
        raise UserError(f"{path}: the file is empty; {expected} expected")


def split_lines(path: str, text: str, notes: list[str]) -> list[str]:
    r"""The lines of a text, split on \n only; one \r before it is removed and noted."""
    check_line_ends(path, text.count("\n"), text.count("\r"))
    lines, returns = split_line_ends(text)
    notes += note_crlf(returns)
    return lines


def split_line_ends(text: str) -> tuple[list[str], int]:
    r"""The lines of a text without their \n and \r\n, and how many ended in \r\n."""
    lines = text.removesuffix("\n").split("\n")
    if "\r" not in text:
        return lines, 0
    returns = sum(line.endswith("\r") for line in lines)
    return [line.removesuffix("\r") for line in lines], returns


def note_crlf(count: int) -> list[str]:
    """What is said of so many Windows line ends."""
    return [f"Windows line ends (CR LF) removed from {count:,} lines"] if count else []


def note_blank(count: int) -> list[str]:
    """What is said of so many blank lines."""
    return [f"blank lines skipped: {count:,}"] if count else []


def note_files(
    shown: Sequence[str], notes: Sequence[list[str]], returns: Sequence[int]
) -> list[str]:
    """What is said of one file, or of two aligned ones; returns: Windows line ends of each."""
    if len(shown) == 1:
        return notes[0]
    known = zip(shown, notes, map(note_crlf, returns), strict=True)
    each = [f"{path}: {note}" for path, some, more in known for note in [*some, *more]]
    return ["read as two aligned files", *each]


def check_line_ends(path: str, newlines: int, returns: int) -> None:
    """Raises an error for a text whose lines end in CR alone."""
    if not newlines and returns > 1:
        raise UserError(
            f"{path}: lines end in CR only (old Mac); convert: tr '\\r' '\\n' < {path} > new-file"
        )


def read_lines(path: str) -> Iterator[str]:
    r"""The lines of a file or of standard input (`-`) one by one, each as soon as it is there.

    Split on \n only; one \r at the end and a byte order mark at the beginning are removed.
    """
    shown = show_path(path)
    with readable_os_errors(shown):
        stream = open_bytes(path)
    return _stream_lines(shown, stream)


def show_path(path: str) -> str:
    """The path as messages name it."""
    return "standard input" if path == "-" else path


def stem(path: str) -> str:
    """The bare name of a file: 'train' for data/train.tsv.gz."""
    if path == "-":
        return "standard-input"
    name = Path(path).name.removesuffix(".gz")
    return Path(name).stem or name


def open_bytes(path: str) -> BinaryIO:
    """The bytes of a file or of standard input, unzipped if they are gzip, whatever the name."""
    if path == "-":
        stream = sys.stdin.buffer
        if not isinstance(stream, io.BufferedReader):
            stream = io.BufferedReader(cast(io.RawIOBase, stream))
    else:
        if not Path(path).exists():
            raise UserError(missing_file(path))
        if Path(path).is_dir():
            raise UserError(f"{path}: this is a folder; a file is expected")
        stream = open(path, "rb")  # noqa: SIM115 -- the caller closes it
    if stream.peek(2)[:2] == GZIP:
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream))
    return stream


def missing_file(path: str) -> str:
    """What to say about a path that does not exist, with the nearest name that does."""
    folder = Path(path).parent
    if not folder.is_dir():
        return f"{path}: no such file; the folder {folder} does not exist"
    names = sorted(entry.name for entry in folder.iterdir())
    near = difflib.get_close_matches(Path(path).name, names, n=1, cutoff=0.6)
    hint = f"; did you mean {folder / near[0]}?" if near else ""
    return f"{path}: no such file{hint}"


@contextmanager
def readable_os_errors(path: str) -> Iterator[None]:
    """Turns what the system says about unreadable files into words for the user."""
    try:
        yield
    except EOFError:
        raise UserError(f"{path}: the gzip file is cut short; copy or download it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path}: damaged gzip file ({error}); download it again") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None


def _stream_lines(path: str, stream: BinaryIO) -> Iterator[str]:
    with readable_os_errors(path), stream:
        for number, raw in enumerate(stream, 1):
            check_text(path, raw)
            try:
                line = raw.decode()
            except UnicodeDecodeError as error:
                raise_bad_lines(path, [(number, bad_byte(raw, error))], CONVERT.format(path))
            if number == 1:
                line = line.removeprefix(BOM)
            yield line.removesuffix("\n").removesuffix("\r")


def check_text(path: str, data: bytes, line: int = 1) -> None:
    """Raises an error if these bytes, which begin with this line, are no text."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UserError(
            f"{path}: this is UTF-16; convert it: iconv -f utf-16 -t utf-8 {path} > new-file"
        )
    if b"\0" in data:
        line += data.count(b"\n", 0, data.index(b"\0"))
        kind = "a zip archive or a spreadsheet" if data.startswith(b"PK") else "a binary file"
        raise UserError(f"{path} line {line}: NUL byte: {kind}, not text; UTF-8 text is expected")


def bad_lines(data: bytes, first: int = 1) -> Iterator[tuple[int, str]]:
    """The lines of these bytes that are not UTF-8, numbered from `first`."""
    for number, raw in enumerate(data.split(b"\n"), first):
        try:
            raw.decode()
        except UnicodeDecodeError as error:
            yield number, bad_byte(raw, error)


def bad_byte(raw: bytes, error: UnicodeDecodeError) -> str:
    """What is wrong with a line that is not UTF-8."""
    around = raw[max(0, error.start - 10) : error.start + 10].decode("latin1").strip()
    return (
        f"not UTF-8: byte 0x{raw[error.start]:02X} at position {error.start + 1} "
        f"(in Latin-1: {around!r})"
    )
