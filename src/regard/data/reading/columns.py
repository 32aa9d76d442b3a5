"""Find the source and target columns of a table: by index, name or known header."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass

from regard.core.errors import UserError

# A first row (or the keys of a JSON object) with both names of a pair is a header.
SOURCES = (
    *("source", "src", "input", "text", "sentence", "original", "question"),
    *("word", "spelling", "orthography", "grapheme", "graphemes", "lemma"),
    *("review", "utterance"),
    *("file", "path", "filename", "file_name", "image", "picture"),
)
TARGETS = (
    *("target", "tgt", "trg", "output", "translation", "label", "answer"),
    *("pronunciation", "pron", "phoneme", "phonemes", "phones", "ipa", "transcription", "form"),
    *("labels", "class", "category", "sentiment", "score", "caption", "captions"),
)
MISSING = ("", "?", "-", "na", "n/a", "nan", "null", "none", "inf", "-inf")  # not column names
CHOOSE = "choose with --source-column and --target-column"


@dataclass(frozen=True, slots=True)
class Columns:
    """The 0-based source and target columns of a table.

    The texts of several source (or target) columns are joined by a space. header: whether the first
    row is a header. chosen: whether the user or a header determines the columns. If not, they are
    the first two.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    header: bool
    chosen: bool

    @property
    def needed(self) -> int:
        """The minimum number of columns that a row must have."""
        return max(*self.source, *self.target) + 1


def known_header(names: Sequence[str]) -> tuple[str, str] | None:
    """Return the source and target column if `names` has a known name for both, else None."""
    lower = {name.strip().lower(): name for name in reversed(names)}
    source = next((lower[name] for name in SOURCES if name in lower), None)
    target = next((lower[name] for name in TARGETS if name in lower), None)
    return (source, target) if source and target else None


def choose_columns(
    path: str,
    line: int,
    first: list[str],
    source: str | None,
    target: str | None,
    notes: list[str],
) -> Columns:
    """Return the columns of a table with this first row; append what was recognized to notes.

    line: number of the first row. source, target: columns that the user passed, if any.
    """
    known = known_header(first)
    # Defaults: the columns of a known header, otherwise the first two.
    source_column = source or (known[0] if known else "1")
    target_column = target or (known[1] if known else "2")
    source_indices, source_named = find_columns(path, line, "source", source_column, first)
    target_indices, target_named = find_columns(path, line, "target", target_column, first)
    if source_indices == target_indices:
        raise UserError(
            f"{path}: source and target are the same column ({source_column})", help=CHOOSE
        )

    header = bool(known) or source_named or target_named
    if header:
        names = ", ".join(name.strip() for name in first)
        notes.append(f"first line is a header: {names}")
    chosen = header or source is not None or target is not None
    if chosen:
        notes.append(
            f"source is column {_describe(source_indices, first if header else None)}, "
            f"target is column {_describe(target_indices, first if header else None)}"
        )
    return Columns(source_indices, target_indices, header, chosen)


def find_columns(
    path: str, line: int, side: str, column: str, first: list[str]
) -> tuple[tuple[int, ...], bool]:
    """Return the 0-based indices of the user's `column`, and whether it contains a name.

    column: a 1-based index, a name in the first row, or a comma-separated list of them. line:
    number of the first row.
    """
    names = [name.strip() for name in first]
    parts = [column] if column in names or column in first else column.split(",")
    indices, named = [], False
    for part in (part.strip() for part in parts):
        if part.isdecimal() and part.isascii():
            if part.strip("0") == "":
                raise UserError(f"--{side}-column: columns are counted from 1, found {part}")
            indices.append(int(part) - 1)
        elif part in names:
            check_distinct(path, line, names, [part])
            indices.append(names.index(part))
            named = True
        else:
            raise _unknown_column(path, side, part, names)
    return tuple(indices), named


def check_distinct(path: str, line: int, names: list[str], used: Sequence[str]) -> None:
    """Raise UserError if a used column name occurs twice in the header. line: of the header."""
    for name in used:
        if names.count(name) > 1:
            columns = [str(index) for index, other in enumerate(names, 1) if other == name]
            raise UserError(
                f"{path} line {line}: column name '{name}' occurs {len(columns)} times: columns "
                f"{', '.join(columns)}",
                help="rename one, or choose by index with --source-column and --target-column",
            )


def _unknown_column(path: str, side: str, part: str, names: list[str]) -> UserError:
    near = difflib.get_close_matches(part, names, n=1)
    help = f"did you mean '{near[0]}'?" if near else "a 1-based column index works too"
    found = ", ".join(names)
    return UserError(
        f"{path}: --{side}-column: no column '{part}' in the first line ({found})", help=help
    )


def _describe(indices: tuple[int, ...], names: list[str] | None) -> str:
    return " + ".join(
        f"{i + 1} ({names[i].strip()})" if names and i < len(names) else str(i + 1) for i in indices
    )


def number(cell: object) -> float | None:
    """Return the number in a cell; None if it is not a finite number."""
    if isinstance(cell, bool) or not isinstance(cell, str | int | float):
        return None
    try:
        value = float(cell)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) and "_" not in str(cell) else None


def is_name(cell: str) -> bool:
    """Return whether a cell of the first row is a name, not a number or a missing value."""
    return number(cell) is None and cell.strip().lower() not in MISSING
