"""Vectors of numbers from CSV or TSV, with numbers or a label for each; every cell is seen to."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from regard.core.errors import UserError
from regard.data.reading.columns import find_columns, is_name, number
from regard.data.reading.lines import raise_bad_lines, read_lines, read_text, show_path, stem
from regard.data.reading.pair_format import Problems, Row
from regard.data.reading.pair_reader import recognize
from regard.data.reading.read import Pair, Pairs

ROWS = 50  # looked at to tell vectors from texts
MOSTLY = 0.8  # of a column of numbers; the rest are mistakes


@dataclass(frozen=True, slots=True)
class VectorColumns:
    """Where features and targets stand, from 0, and what all columns are called."""

    source: tuple[int, ...]
    target: tuple[int, ...]
    names: list[str]
    header: bool

    def names_of(self, places: tuple[int, ...]) -> list[str]:
        """What these columns are called."""
        return [self.names[place] for place in places]


def read_vectors(
    path: str,
    source_column: str | None = None,
    target_column: str | None = None,
    labels: bool = False,
) -> tuple[Pairs, list[str], list[str]]:
    """Vectors of numbers and their targets; the names of the features and of the targets.

    The target is the last column unless chosen, the features are all others unless chosen. With
    `labels` the target is a tuple of one label, else of numbers.
    """
    text, notes = read_text(path, "rows of numbers are")
    shown = show_path(path)
    rows = recognize(path, text, notes).read_rows(shown, text, notes)
    table = _find_table(shown, rows, source_column, target_column)
    if labels and len(table.target) > 1:
        raise UserError(f"--target-column {target_column}: one column of labels is expected")
    line, first = rows[0]
    if len(first) > len(table.names):
        raise_bad_lines(shown, [(line, f"{len(table.names)} columns expected, {len(first)} found")])
    features, targets = table.names_of(table.source), table.names_of(table.target)
    if table.header:
        notes.append(f"first line is a header: {', '.join(table.names)}")
    notes.append(f"features: {len(features):,}; the target is column {', '.join(targets)}")
    pairs = _vector_pairs(shown, rows[table.header :], table, labels)
    if not pairs:
        raise UserError(f"{shown}: only a header; rows of numbers are expected below it")
    return Pairs(stem(path), shown, pairs, notes), features, targets


def looks_like_vectors(
    path: str, source_column: str | None = None, target_column: str | None = None
) -> bool:
    """Whether the first rows of a CSV or TSV file have numbers in all their feature columns.

    Missing values, and in several columns now and then a cell that is no number, count as well,
    for `read_vectors` names them. Standard input can be read
    only once, so nothing is looked at there: False.
    """
    if path == "-":
        return False
    text = "\n".join(itertools.islice(read_lines(path), ROWS + 1))
    if not text.strip():
        return False
    found = recognize(path, text, [])
    try:
        rows = found.read_rows(path, text, [])
        table = _find_table(path, rows, source_column, target_column)
    except UserError:
        return False  # the reader of texts or of vectors will say what is wrong
    cells = [
        [cells[place] for _, cells in rows[table.header :] if place < len(cells)]
        for place in table.source
    ]
    least = MOSTLY if len(cells) > 1 else 1.0  # a single column may well be texts
    return all(
        any(number(cell) is not None for cell in column)
        and sum(not is_name(cell) for cell in column) >= least * len(column)
        for column in cells
    )


def numbers(
    cells: Sequence[object], names: Sequence[str], line: int, problems: Problems
) -> tuple[float, ...]:
    """The cells as numbers; each that is none goes to the problems, by the name of its column."""
    found = []
    for cell, name in zip(cells, names, strict=True):
        value = number(cell)
        if value is None:
            shown = "nothing" if cell is None or not str(cell).strip() else repr(cell)
            problems.append((line, f"column {name}: a finite number is expected, {shown} found"))
        else:
            found.append(value)
    return tuple(found)


def _find_table(
    path: str, rows: list[Row], source: str | None, target: str | None
) -> VectorColumns:
    """The columns; the first row is a header if a column was named or a feature is no number."""
    first = rows[0][1]
    targets, target_named = (
        find_columns(path, "target", target, first) if target else ((len(first) - 1,), False)
    )
    others = tuple(place for place in range(len(first)) if place not in targets)
    features, source_named = (
        find_columns(path, "source", source, first) if source else (others, False)
    )
    for side, places in (("source", features), ("target", targets)):
        if max(places, default=0) >= len(first):
            raise UserError(
                f"{path} line {rows[0][0]}: --{side}-column: no column {max(places) + 1}; "
                f"{len(first)} columns found"
            )
    if not features:
        raise UserError(f"{path}: all columns are targets; at least one feature is expected")
    if both := set(features) & set(targets):
        raise UserError(
            f"{path}: column {min(both) + 1} is both feature and target; "
            f"choose with --source-column and --target-column"
        )
    header = source_named or target_named or any(is_name(first[place]) for place in features)
    count = Counter(len(cells) for _, cells in rows).most_common(1)[0][0]
    names = [name.strip() for name in first] if header else [str(n + 1) for n in range(count)]
    return VectorColumns(features, targets, names, header)


def _vector_pairs(path: str, rows: list[Row], table: VectorColumns, labels: bool) -> list[Pair]:
    features, targets = table.names_of(table.source), table.names_of(table.target)
    pairs = []
    problems: Problems = []
    for line, cells in rows:
        if len(cells) != len(table.names):
            problems.append((line, f"{len(table.names)} columns expected, {len(cells)} found"))
            continue
        source = numbers([cells[place] for place in table.source], features, line, problems)
        chosen = [cells[place] for place in table.target]
        if not labels:
            pairs.append(Pair(source, numbers(chosen, targets, line, problems), line))
            continue
        label = chosen[0].strip()
        if not label:
            problems.append((line, f"column {targets[0]}: a label is expected, nothing found"))
        pairs.append(Pair(source, (label,), line))
    raise_bad_lines(path, problems)
    return pairs
