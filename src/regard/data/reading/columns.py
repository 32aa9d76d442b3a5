"""Tables: their rows, and which columns hold source and target: by number, name or known header."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from regard.core.errors import UserError
from regard.data.reading.lines import refuse, split_lines

Row = tuple[int, list[str]]  # line number, cells

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


def read_rows(path: str, text: str, kind: str, notes: list[str]) -> list[Row]:
    """The rows of a table of two columns or more, blank lines left out."""
    rows = (_tsv_rows if kind == "TSV" else _csv_rows)(path, text, notes)
    if not any(len(cells) > 1 for _, cells in rows):
        refuse_single_column(path, kind, rows[0], len(rows))
    return rows


def _tsv_rows(path: str, text: str, notes: list[str]) -> list[Row]:
    lines = split_lines(path, text, notes)
    return _skip_blank(
        [(line, cells.split("\t")) for line, cells in enumerate(lines, 1)], is_blank_line, notes
    )


def is_blank_line(cells: list[str]) -> bool:
    """Whether a line of a TSV file holds nothing but white space."""
    return len(cells) == 1 and not cells[0].strip()


def _csv_rows(path: str, text: str, notes: list[str]) -> list[Row]:
    comma = csv_comma(text.split("\n", 1)[0], notes)
    rows, problems = csv_rows(text, comma)
    refuse(path, problems)
    return _skip_blank(rows, lambda cells: not cells, notes)


def csv_comma(first: str, notes: list[str]) -> str:
    """What separates the columns of a CSV file with this first line; it is noted."""
    comma = next((mark for mark in ",;\t" if mark in first), ",")
    if comma != ",":
        notes.append(f"columns are separated by {'tabs' if comma != ';' else 'semicolons'}")
    if first.endswith("\r"):
        notes.append("Windows line ends (CR LF) removed")
    return comma


def csv_rows(text: str, comma: str, line: int = 1) -> tuple[list[Row], list[tuple[int, str]]]:
    """The rows of CSV that begins in this line, blank ones as empty lists; and the bad lines."""
    rows: list[Row] = []
    problems: list[tuple[int, str]] = []
    lines = text.removesuffix("\n").split("\n")
    reader = csv.reader((one + "\n" for one in lines), delimiter=comma, strict=True)
    while True:
        start = reader.line_num + line
        try:
            rows.append((start, next(reader)))
        except StopIteration:
            return rows, problems
        except csv.Error as error:
            problems.append(
                (start, f"CSV: {error}; is a quotation mark not closed or not doubled?")
            )
            if "field larger" in str(error):
                return rows, problems


def _skip_blank(
    rows: list[Row], is_blank: Callable[[list[str]], bool], notes: list[str]
) -> list[Row]:
    kept = [row for row in rows if not is_blank(row[1])]
    if len(kept) < len(rows):
        notes.append(f"blank lines skipped: {len(rows) - len(kept):,}")
    return kept


def refuse_single_column(path: str, kind: str, first: Row, count: int) -> None:
    """Raises an error for a table of one column with this first row and so many rows."""
    line, cells = first
    separator = "tab" if kind == "TSV" else "comma"
    commas = kind == "TSV" and "," in cells[0]
    hint = "; if commas separate the columns, name the file .csv" if commas else ""
    raise UserError(
        f"{path} line {line}: 2 columns expected (source, {separator}, target), 1 found, as in all "
        f"{count:,} lines{hint}; for two files use --source A --target B, for running "
        "text --task language-model"
    )


def known_header(names: Sequence[str]) -> tuple[str, str] | None:
    """The names of source and target, if both are among the names."""
    lower = {name.strip().lower(): name for name in reversed(names)}
    source = next((lower[name] for name in SOURCES if name in lower), None)
    target = next((lower[name] for name in TARGETS if name in lower), None)
    return (source, target) if source and target else None


def choose_columns(
    path: str, first: list[str], source: str | None, target: str | None, notes: list[str]
) -> Columns:
    """The columns of a table whose first row is `first`; what was recognised goes to the notes."""
    known = known_header(first)
    # Numbers come from the command line or from the first two columns, names from a header.
    source_column = source or (known[0] if known else "1")
    target_column = target or (known[1] if known else "2")
    source_places, source_named = find_columns(path, "source", source_column, first)
    target_places, target_named = find_columns(path, "target", target_column, first)
    if source_places == target_places:
        raise UserError(
            f"{path}: source and target are the same column ({source_column}); "
            f"choose with --source-column and --target-column"
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
