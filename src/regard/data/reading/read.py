"""Pairs from files: TSV, CSV, JSONL or two aligned files, each also gzip; errors carry the line."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.core.errors import UserError
from regard.data.reading.columns import Columns, Row, choose_columns, read_rows
from regard.data.reading.json_lines import read_json
from regard.data.reading.lines import read_lines, read_text, refuse, show_path, split_lines, stem

__all__ = [
    "Example",
    "Pair",
    "Pairs",
    "group",
    "read_aligned",
    "read_lines",
    "read_pairs",
    "split_dev",
]

FORMATS = {".tsv": "TSV", ".txt": "TSV", ".csv": "CSV", ".jsonl": "JSONL", ".json": "JSONL"}
LOOK = "choose with --source-column and --target-column"


@dataclass(frozen=True, slots=True)
class Pair:
    """One source and one target, and the line of the file they began in, from 1.

    A side is a text, the tuple of its words or tags, or a tuple of numbers.
    """

    source: Any
    target: Any
    line: int

    def empty(self) -> bool:
        """Whether a side holds nothing, or nothing but white space."""
        return not (_filled(self.source) and _filled(self.target))


def _filled(side: Any) -> bool:
    """Whether there is anything in a side."""
    return bool(side.strip()) if isinstance(side, str) else len(side) > 0


@dataclass(frozen=True, slots=True)
class Example:
    """One source with all its targets, in order, without repeats."""

    source: Any
    references: tuple[Any, ...]


@dataclass
class Pairs:
    """What a file held: its pairs, and notes on what was recognised, to be shown to the user."""

    name: str
    path: str
    pairs: Sequence[Pair]
    notes: list[str] = field(default_factory=list)


def read_pairs(
    path: str, source_column: str | None = None, target_column: str | None = None
) -> Pairs:
    """The pairs of a TSV, CSV or JSONL file, or of standard input (`-`).

    A column is a number from 1, a header name or JSON key, or a comma list joined by a space.
    """
    text, notes = read_text(path)
    shown = show_path(path)
    kind = recognise(path, text, notes)
    if kind == "JSONL":
        found = read_json(shown, text, source_column, target_column, notes)
        pairs = [Pair(source, target, line) for source, target, line in found]
    else:
        rows = read_rows(shown, text, kind, notes)
        columns = choose_columns(shown, rows[0][1], source_column, target_column, notes)
        pairs = table_pairs(shown, rows, columns, notes)
    refuse_empty_sides(shown, pairs)
    return Pairs(stem(path), shown, pairs, notes)


def read_aligned(source: str, target: str) -> Pairs:
    """The pairs of two files with the same number of lines, each line its own side."""
    notes: list[str] = []
    sides = []
    for path in (source, target):
        text, found = read_text(path)
        sides.append(split_lines(show_path(path), text, found))
        notes += [f"{show_path(path)}: {note}" for note in found]
    left, right = sides
    if len(left) != len(right):
        refuse_unequal(source, len(left), target, len(right))
    numbered = enumerate(zip(left, right, strict=True), 1)
    pairs = [Pair(one, other, line) for line, (one, other) in numbered]
    shown = f"{source} and {target}"
    refuse_empty_sides(shown, pairs)
    return Pairs(stem(source), shown, pairs, ["read as two aligned files", *notes])


def refuse_unequal(source: str, left: int, target: str, right: int) -> None:
    """Raises an error for two files with different numbers of lines."""
    raise UserError(
        f"{source} has {left:,} lines, {target} has {right:,}: the same number "
        f"is expected; look for a line that was lost or broken in two"
    )


def split_dev(
    pairs: list[Pair], share: float = 0.1, most: int = 1_000
) -> tuple[list[Pair], list[Pair]]:
    """Train and dev parts. All pairs of a source stay on one side, decided by a hash of the source.

    Dev gets `share` of the sources, at most `most`, at least one; the order of lines is no matter.
    """
    sources = {pair.source for pair in pairs}
    count = dev_size(len(pairs), len(sources), share, most)
    dev = set(sorted(sources, key=hash_source)[:count])
    return (
        [pair for pair in pairs if pair.source not in dev],
        [pair for pair in pairs if pair.source in dev],
    )


def dev_size(pairs: int, sources: int, share: float = 0.1, most: int = 1_000) -> int:
    """How many of the different sources go to the dev part."""
    if sources < 2:
        raise UserError(
            f"{pairs} pair{'s' * (pairs != 1)} with {sources} distinct source: at "
            "least 2 sources are needed to set a dev part aside; give more data, or in training "
            "--dev FILE"
        )
    return max(1, min(most, round(share * sources), sources - 1))


def hash_source(source: Any) -> bytes:
    """A number for a source that is the same on every machine."""
    source = source if isinstance(source, str) else repr(source)
    return hashlib.blake2b(source.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def group(pairs: Iterable[Pair]) -> list[Example]:
    """One example a source, in order of first occurrence, its targets in order without repeats."""
    targets: dict[Any, dict[str, None]] = {}
    for pair in pairs:
        targets.setdefault(pair.source, {})[pair.target] = None
    return [Example(source, tuple(references)) for source, references in targets.items()]


def recognise(path: str, text: str, notes: list[str]) -> str:
    """The format by the name of the file, or guessed where the name does not say; it is noted."""
    extension = Path(path.removesuffix(".gz")).suffix.lower()
    if extension in (".conllu", ".conll-u"):
        raise UserError(f"{path}: CoNLL-U holds words with their tags: add --task tag")
    if path != "-" and extension in FORMATS:
        kind, how = FORMATS[extension], ""
    else:
        kind, how = _guess(text), ", guessed from the first lines"
    notes.insert(0, f"read as {kind}{how}")
    return kind


def _guess(text: str) -> str:
    first = [line for line in text[:100_000].split("\n")[:20] if line.strip()]
    if first[0].lstrip().startswith("{"):
        return "JSONL"
    commas = all("," in line for line in first) and not any("\t" in line for line in first)
    return "CSV" if commas else "TSV"


def table_pairs(path: str, rows: list[Row], columns: Columns, notes: list[str]) -> list[Pair]:
    """Source and target of each row."""
    counts = Counter(len(cells) for _, cells in rows if len(cells) > 1)
    expected = columns.needed if columns.chosen else counts.most_common(1)[0][0]
    notes += note_columns(columns, expected)

    pairs, problems = [], []
    words = f"{expected} columns{' or more' * columns.chosen} expected, "
    for line, cells in rows[columns.header :]:
        if len(cells) < expected or (len(cells) > expected and not columns.chosen):
            problems.append((line, f"{words}{len(cells)} found"))
            continue
        source = " ".join(cells[place] for place in columns.source)
        target = " ".join(cells[place] for place in columns.target)
        pairs.append(Pair(source, target, line))
    refuse(path, problems)
    return pairs


def note_columns(columns: Columns, expected: int) -> list[str]:
    """What is said of a table that has more columns than are read."""
    if columns.chosen or expected <= 2:
        return []
    return [f"{expected} columns: the first two are source and target; others: {LOOK}"]


def refuse_empty_sides(path: str, pairs: list[Pair]) -> None:
    """Raises an error if there are no pairs or if a side is empty in all of them."""
    filled = [any(getattr(p, side).strip() for p in pairs) for side in ("source", "target")]
    refuse_sides(path, len(pairs), filled)


def refuse_sides(path: str, count: int, filled: list[bool]) -> None:
    """Raises an error if there are no pairs or if a side is filled in none of them."""
    if not count:
        raise UserError(f"{path}: no pairs, only a header; pairs of source and target are expected")
    for side, found in zip(("source", "target"), filled, strict=True):
        if not found:
            raise UserError(
                f"{path}: the {side} is empty in all {count:,} pairs; is it another column? {LOOK}"
            )
