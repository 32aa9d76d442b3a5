"""Read texts with labels or numbers as targets; see vectors.py for vectors."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from regard.core.errors import UserError
from regard.core.formatting import count_noun
from regard.data.reading.json_lines import name_of
from regard.data.reading.lines import raise_bad_lines, read_text, show_path, stem
from regard.data.reading.pair_format import Problems
from regard.data.reading.pair_reader import recognize
from regard.data.reading.read import Pair, Pairs, pairs_of
from regard.data.reading.vectors import looks_like_vectors, numbers, read_vectors

__all__ = ["looks_like_vectors", "read_labeled", "read_numbers", "read_vectors"]


def read_labeled(
    path: str,
    source_column: str | None = None,
    target_column: str | None = None,
    separator: str | None = None,
) -> Pairs:
    """Return texts and their labels from TSV, CSV or JSONL: the target is a tuple of labels.

    separator: string between the labels of a cell (multi-label). With a separator, an empty cell
    means no labels. A JSON list of labels needs no separator.
    """
    text, notes = read_text(path, "texts and their labels")
    shown = show_path(path)
    kind, problems = recognize(path, text, notes), Problems()
    names = (source_column, target_column)
    found, _ = kind.values(shown, text, names, notes, problems, apart=False)

    pairs = []
    changes: Counter[str] = Counter()
    for pair in pairs_of(found):
        try:
            labels = _labels(pair.target, separator, changes)
            pairs.append(Pair(pair.source, labels, pair.line))
        except ValueError as error:
            problems.append((pair.line, str(error)))
    raise_bad_lines(shown, sorted(problems))
    _check_not_empty(shown, pairs, "label")
    notes += [f"{change}: {count:,}" for change, count in changes.items() if count]
    return Pairs(stem(path), shown, pairs, notes)


def read_numbers(
    path: str, source_column: str | None = None, target_column: str | None = None
) -> Pairs:
    """Return texts and their numbers from TSV, CSV or JSONL: the target is a tuple of numbers.

    Several numbers per text come from a JSON list or from a comma-separated list of columns.
    """
    text, notes = read_text(path, "texts and their numbers")
    shown = show_path(path)
    kind, problems = recognize(path, text, notes), Problems()
    columns = (source_column, target_column)
    found, names = kind.values(shown, text, columns, notes, problems, apart=True)

    pairs = []
    for pair in pairs_of(found):
        cells = pair.target if isinstance(pair.target, list) else [pair.target]
        known = names if len(names) == len(cells) else names[:1] * len(cells)
        pairs.append(Pair(pair.source, numbers(cells, known, pair.line, problems), pair.line))
    raise_bad_lines(shown, sorted(problems))
    _check_not_empty(shown, pairs, "number")
    count = len(pairs[0].target)
    expected = f"expected {count_noun(count, 'number')} as in line {pairs[0].line}"
    bad = [pair for pair in pairs if len(pair.target) != count]
    raise_bad_lines(shown, [(pair.line, f"{expected}, found {len(pair.target)}") for pair in bad])
    return Pairs(stem(path), shown, pairs, notes)


def _labels(cell: Any, separator: str | None, changes: Counter[str]) -> tuple[str, ...]:
    """Return the distinct, stripped labels of a cell or JSON value; count what was changed."""
    if isinstance(cell, list):
        parts = cell
    elif separator and isinstance(cell, str):
        parts = cell.split(separator) if cell else []
    else:
        parts = [cell]
    labels = []
    for part in parts:
        if isinstance(part, bool | int | float):
            changes["JSON numbers and booleans read as label text"] += 1
            part = json.dumps(part)
        if not isinstance(part, str):
            raise ValueError(f"label: expected a string, found {name_of(part)}")
        label = part.strip()
        if not label:
            where = "" if len(parts) == 1 else f" in {cell!r}"
            found = repr(part) if part else "nothing"
            raise ValueError(f"expected a label, found {found}{where}")
        changes["whitespace around labels removed"] += label != part
        labels.append(label)
    changes["duplicate labels of a text removed"] += len(labels) - len(set(labels))
    return tuple(dict.fromkeys(labels))


def _check_not_empty(path: str, pairs: list[Pair], noun: str) -> None:
    """Raise UserError if all texts or all targets are empty. noun: what a target is."""
    if not any(pair.source.strip() for pair in pairs):
        raise UserError(f"{path}: no text in all {len(pairs):,} lines")
    if not any(pair.target for pair in pairs):
        raise UserError(f"{path}: no {noun} in all {len(pairs):,} lines")
