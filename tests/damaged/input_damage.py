"""Ways to damage a data file."""

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

HUGE_LINE = 3_000_000
BOMB = gzip.compress(bytes(10 * 1024**2)) * 150  # 1.5 GB of NUL in a small file
CELLS = (
    "",
    "nan",
    "inf",
    "-1e999",
    "9" * 5000,
    "\0",
    '"',
    "'",
    "\t\t\t",
    ",,,",
    "\u202e",
    "\ufeff",
)
JSON = ("[" * 100_000, '{"source":' * 5000, '{"source": ' + "9" * 5000 + "}", "null", "[]", "{}")


def write_damaged(text: str, suffix: str, folder: Path, chance: random.Random) -> tuple[Path, str]:
    """Write a damaged version of a data file; return its path and what was done."""
    content, done = text.encode(), []
    for _ in range(chance.choice([1, 1, 1, 2])):
        damage = chance.choice(DAMAGES)
        content = damage(content, chance)
        done.append(damage.__name__)
    if chance.random() < 0.2:
        suffix = chance.choice([".tsv", ".csv", ".jsonl", ".conllu", ".conll", ".txt"])
        done.append(f"as {suffix}")
    if chance.random() < 0.25:
        content, suffix = _zipped(content, chance), suffix + ".gz"
        done.append("gz")
    path = folder / f"data{suffix}"
    path.write_bytes(content)
    return path, ", ".join(done)


def _zipped(content: bytes, chance: random.Random) -> bytes:
    zipped, draw = gzip.compress(content), chance.random()
    if draw < 0.3:
        return truncated(zipped, chance)
    if draw < 0.6:
        return flipped(zipped, chance)
    return BOMB if draw < 0.7 else zipped


def truncated(content: bytes, chance: random.Random) -> bytes:
    """Return the first bytes."""
    return content[: chance.choice([0, 1, chance.randrange(len(content) + 1)])]


def flipped(content: bytes, chance: random.Random) -> bytes:
    """Return the content with flipped bits."""
    found = bytearray(content)
    for _ in range(chance.randint(1, 10) if found else 0):
        found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
    return bytes(found)


def with_nul(content: bytes, chance: random.Random) -> bytes:
    """Return the content with NUL bytes."""
    return _inserted(content, b"\0" * chance.choice([1, 1000]), chance)


def not_utf8(content: bytes, chance: random.Random) -> bytes:
    """Return the content with bytes that are not UTF-8."""
    return _inserted(
        content, chance.choice([b"\xff", b"\xc3", b"\xed\xa0\x80", b"caf\xe9"]), chance
    )


def huge_line(content: bytes, chance: random.Random) -> bytes:
    """Return the content with a line of millions of characters."""
    unit = chance.choice([b"a", b"a b ", b"a\t", b"1,", b'"', b"[", "\u00e9".encode()])
    return _inserted(content, unit * (HUGE_LINE // len(unit)), chance)


def many_columns(content: bytes, chance: random.Random) -> bytes:
    """Return the content with a wrong number of columns in some lines."""
    lines = content.split(b"\n")
    for _ in range(chance.choice([1, len(lines)])):
        at = chance.randrange(len(lines))
        added = chance.choice([b"\t", b",", b"\tx\ty", b",1,2,3", b" ", b"|"])
        lines[at] = chance.choice([lines[at] + added, lines[at].replace(b"\t", b" "), added])
    return b"\n".join(lines)


def odd_cells(content: bytes, chance: random.Random) -> bytes:
    """Return the content with unusual cells."""
    lines = content.split(b"\n")
    at = chance.randrange(len(lines))
    separator = chance.choice([b"\t", b",", b" "])
    cells = lines[at].split(separator)
    cells[chance.randrange(len(cells))] = chance.choice(CELLS).encode()
    lines[at] = separator.join(cells)
    return b"\n".join(lines)


def json_line(content: bytes, chance: random.Random) -> bytes:
    """Return the content with a line of unusual JSON."""
    odd = [*JSON, json.dumps({"source": [[]], "target": {"a": 1}}), '{"source": 1e999}']
    lines = content.split(b"\n")
    lines.insert(chance.randrange(len(lines) + 1), chance.choice(odd).encode())
    return b"\n".join(lines)


def binary(content: bytes, chance: random.Random) -> bytes:
    """Return random bytes."""
    return chance.randbytes(chance.choice([10, 1000, 1_000_000]))


def other_line_ends(content: bytes, chance: random.Random) -> bytes:
    """Return the content with other line ends."""
    ends = chance.choice([b"\r", b"\r\n", b"\n\n\n", b"\n \n", b"\x0b", b"", "\u2028".encode()])
    return content.replace(b"\n", ends)


def other_encoding(content: bytes, chance: random.Random) -> bytes:
    """Return the content in another encoding."""
    return content.decode(errors="replace").encode(chance.choice(["utf-16", "utf-32", "utf-8-sig"]))


def _inserted(content: bytes, added: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content) + 1)
    return content[:at] + added + content[at:]


DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(truncated, flipped, with_nul, not_utf8, huge_line, many_columns, odd_cells, json_line),
    *(binary, other_line_ends, other_encoding),
)
