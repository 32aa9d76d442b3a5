"""Which columns of a table hold source and target: by number, name or known header."""

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
)
TARGETS = (
    *("target", "tgt", "trg", "output", "translation", "label", "answer"),
    *("pronunciation", "pron", "phoneme", "phonemes", "phones", "ipa", "transcription", "form"),
    *("labels", "class", "category", "sentiment", "score"),
)
MISSING = ("", "?", "-", "na", "n/a", "nan", "null", "none", "inf", "-inf")  # no names of columns
CHOOSE = "choose with --source-column and --target-column"


@dataclass(frozen=True, slots=True)
class Columns:
    """Positions of source and target, from 0; several are joined by a space."""

    source: tuple[int, ...]
    target: tuple[int, ...]
    header: bool
    chosen: bool  # by the user or by a header, not merely the first two

    @property
    def needed(self) -> int:
        """How many columns a row must have."""
        return max(*self.source, *self.target) + 1


def known_header(names: Sequence[str]) -> tuple[str, str] | None:
    """The names of source and target, if both are among the names."""
    lower = {name.strip().lower(): name for name in reversed(names)}
    source = next((lower[name] for name in SOURCES if name in lower), None)
    target = next((lower[name] for name in TARGETS if name in lower), None)
    return (source, target) if source and target else None


def choose_columns(
    path: str, first: list[str], source: str | None, target: str | None, notes: list[str]
) -> Columns:
    """The columns of a table whose first row is `first`; what was recognized goes to the notes."""
    known = known_header(first)
    # Numbers come from the command line or from the first two columns, names from a header.
    source_column = source or (known[0] if known else "1")
    target_column = target or (known[1] if known else "2")
    source_places, source_named = find_columns(path, "source", source_column, first)
    target_places, target_named = find_columns(path, "target", target_column, first)
    if source_places == target_places:
        raise UserError(
            f"{path}: source and target are the same column ({source_column}); {CHOOSE}"
        )

    header = bool(known) or source_named or target_named
    if header:
        names = ", ".join(name.strip() for name in first)
        notes.append(f"first line is a header: {names}")
    chosen = header or source is not None or target is not None
    if chosen:
        notes.append(
            f"source is column {_describe(source_places, first if header else None)}, "
            f"target is column {_describe(target_places, first if header else None)}"
        )
    return Columns(source_places, target_places, header, chosen)


def find_columns(
    path: str, side: str, column: str, first: list[str]
) -> tuple[tuple[int, ...], bool]:
    """The places of a column or of a comma list of columns, and whether one went by its name."""
    names = [name.strip() for name in first]
    parts = [column] if column in names or column in first else column.split(",")
    places, named = [], False
    for part in (part.strip() for part in parts):
        if part.isdecimal() and part.isascii():
            if part.strip("0") == "":
                raise UserError(f"--{side}-column: columns are counted from 1, {part} found")
            places.append(int(part) - 1)
        elif part in names:
            places.append(names.index(part))
            named = True
        else:
            raise UserError(_unknown_column(path, side, part, names))
    return tuple(places), named


def _unknown_column(path: str, side: str, part: str, names: list[str]) -> str:
    near = difflib.get_close_matches(part, names, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else "; a number counted from 1 works as well"
    return (
        f"{path}: --{side}-column: no column '{part}' in the first line ({', '.join(names)}){hint}"
    )


def _describe(places: tuple[int, ...], names: list[str] | None) -> str:
    return " + ".join(
        f"{place + 1} ({names[place].strip()})" if names and place < len(names) else str(place + 1)
        for place in places
    )


def number(cell: object) -> float | None:
    """The finite number of a cell; None if it holds anything else."""
    if isinstance(cell, bool) or not isinstance(cell, str | int | float):
        return None
    try:
        value = float(cell)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) and "_" not in str(cell) else None


def is_name(cell: str) -> bool:
    """Whether a cell of the first row is a name rather than a number or a missing one."""
    return number(cell) is None and cell.strip().lower() not in MISSING
