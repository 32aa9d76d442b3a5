"""One answer for a whole input: labels or numbers for texts; for vectors see vectors.py."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

from regard.core.errors import UserError
from regard.data.reading.columns import Row, choose_columns, known_header, read_rows
from regard.data.reading.json_lines import find_keys, name_of, parse_objects, pick, text_of
from regard.data.reading.lines import read_text, refuse, show_path, stem
from regard.data.reading.read import Pair, Pairs, recognise, refuse_empty_sides, table_pairs
from regard.data.reading.vectors import (
    Problems,
    is_name,
    looks_like_vectors,
    number,
    numbers,
    read_vectors,
)

__all__ = ["looks_like_vectors", "read_labelled", "read_numbers", "read_vectors"]


def read_labelled(
    path: str,
    source_column: str | None = None,
    target_column: str | None = None,
    several: str | None = None,
) -> Pairs:
    """Texts and their labels from TSV, CSV or JSONL: the target is a tuple of labels.

    `several` is what separates the labels of a cell; an empty cell is then no label. A JSON list
    of labels needs no separator.
    """
    text, notes = read_text(path, "texts and their labels are")
    shown = show_path(path)
    kind = recognise(path, text, notes)
    problems: Problems = []
    if kind == "JSONL":
        found, keys = _json_cells(shown, text, source_column, target_column, notes, problems)
        if len(keys) > 1:
            raise UserError(f"--target-column {target_column}: one key of labels is expected")
    else:
        rows = read_rows(shown, text, kind, notes)
        columns = choose_columns(shown, rows[0][1], source_column, target_column, notes)
        found = table_pairs(shown, rows, columns, notes)
        refuse_empty_sides(shown, found)

    pairs = []
    changes: Counter[str] = Counter()
    for pair in found:
        try:
            labels = _labels(pair.target, several, changes)
            pairs.append(Pair(pair.source, labels, pair.line))
        except ValueError as error:
            problems.append((pair.line, str(error)))
    refuse(shown, sorted(problems))
    _refuse_empty(shown, pairs, "label")
    notes += [f"{change}: {count:,}" for change, count in changes.items() if count]
    return Pairs(stem(path), shown, pairs, notes)


def read_numbers(
    path: str, source_column: str | None = None, target_column: str | None = None
) -> Pairs:
    """Texts and their numbers from TSV, CSV or JSONL: the target is a tuple of numbers.

    A comma list of target columns, or a JSON list, gives several numbers.
    """
    text, notes = read_text(path, "texts and their numbers are")
    shown = show_path(path)
    kind = recognise(path, text, notes)
    problems: Problems = []
    if kind == "JSONL":
        found, keys = _json_cells(shown, text, source_column, target_column, notes, problems)
        names = list(keys)
    else:
        rows = read_rows(shown, text, kind, notes)
        found, names = _number_cells(shown, rows, source_column, target_column, notes)

    pairs = []
    for pair in found:
        cells = pair.target if isinstance(pair.target, list) else [pair.target]
        known = names if len(names) == len(cells) else names[:1] * len(cells)
        pairs.append(Pair(pair.source, numbers(cells, known, pair.line, problems), pair.line))
    refuse(shown, sorted(problems))
    _refuse_empty(shown, pairs, "number")
    count = len(pairs[0].target)
    expected = f"{count} number{'s' * (count != 1)} expected as in line {pairs[0].line}"
    odd = [pair for pair in pairs if len(pair.target) != count]
    refuse(shown, [(pair.line, f"{expected}, {len(pair.target)} found") for pair in odd])
    return Pairs(stem(path), shown, pairs, notes)


def _labels(cell: Any, several: str | None, changes: Counter[str]) -> tuple[str, ...]:
    """The labels of a cell or of a JSON value, without white space around them and repeats."""
    if isinstance(cell, list):
        parts = cell
    elif several and isinstance(cell, str):
        parts = cell.split(several) if cell else []
    else:
        parts = [cell]
    labels = []
    for part in parts:
        if isinstance(part, bool | int | float):
            changes["labels that are numbers, true or false in JSON, read as text"] += 1
            part = json.dumps(part)
        if not isinstance(part, str):
            raise ValueError(f"a label must be a string, {name_of(part)} found")
        label = part.strip()
        if not label:
            where = "" if len(parts) == 1 else f" in {cell!r}"
            found = repr(part) if part else "nothing"
            raise ValueError(f"a label is expected, {found} found{where}")
        changes["white space around labels removed"] += label != part
        labels.append(label)
    changes["labels repeated for one text, taken once"] += len(labels) - len(set(labels))
    return tuple(dict.fromkeys(labels))


def _json_cells(
    path: str,
    text: str,
    source: str | None,
    target: str | None,
    notes: list[str],
    problems: Problems,
) -> tuple[list[Pair], tuple[str, ...]]:
    """Each text with its JSON value, or a list of values under several keys; the target keys."""
    records, bad = parse_objects(path, text, notes)
    problems += bad
    names = list(records[0][1]) if records else []
    known = known_header(names) or ("source", "target")
    sources = find_keys(source or known[0], names)
    targets = find_keys(target or known[1], names)
    notes.append(f"source is {' + '.join(sources)}, target is {' + '.join(targets)}")
    found = []
    for line, record in records:
        try:
            texts = zip(sources, pick(record, sources), strict=True)
            left = " ".join(text_of(value, key) for key, value in texts)
            values = pick(record, targets)
            found.append(Pair(left, values[0] if len(values) == 1 else values, line))
        except ValueError as error:
            problems.append((line, str(error)))
    return found, targets


def _number_cells(
    path: str, rows: list[Row], source: str | None, target: str | None, notes: list[str]
) -> tuple[list[Pair], list[str]]:
    """Each text with the cells of its numbers; the names of the target columns.

    A first row without numbers above a row with numbers is a header, whatever its words.
    """
    first = rows[0][1]
    columns = choose_columns(path, first, source, target, notes)
    if not columns.header and len(rows) > 1:
        above, below = (
            [cells[place] for place in columns.target if place < len(cells)]
            for _, cells in rows[:2]
        )
        if all(is_name(cell) for cell in above) and any(number(cell) is not None for cell in below):
            columns = replace(columns, header=True)
            notes.append(f"first line is a header: {', '.join(name.strip() for name in first)}")
    pairs = table_pairs(path, rows, columns, notes)
    kept = rows[columns.header :]
    found = [
        Pair(pair.source, [cells[place] for place in columns.target], line)
        for pair, (line, cells) in zip(pairs, kept, strict=True)
    ]
    names = [
        first[place].strip() if columns.header and place < len(first) else str(place + 1)
        for place in columns.target
    ]
    return found, names


def _refuse_empty(path: str, pairs: list[Pair], noun: str) -> None:
    """Raises an error if no text is left, or none has an answer."""
    if not any(pair.source.strip() for pair in pairs):
        raise UserError(f"{path}: no text in all {len(pairs):,} lines; texts are expected")
    if not any(pair.target for pair in pairs):
        raise UserError(f"{path}: no {noun} in all {len(pairs):,} lines; {noun}s are expected")
