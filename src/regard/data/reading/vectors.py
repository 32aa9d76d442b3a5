"""Read vectors of numbers from CSV or TSV, each with target numbers or a label."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from regard.core.errors import UserError
from regard.data.reading.columns import check_distinct, find_columns, is_name, number
from regard.data.reading.lines import raise_bad_lines, read_lines, read_text, show_path, stem
from regard.data.reading.pair_format import Problems, Row
from regard.data.reading.pair_reader import recognize
from regard.data.reading.read import Pair, Pairs

MAX_NUMBER = 1e100  # larger numbers overflow when they are standardized
MAX_ROWS = 50  # first rows that decide between vectors and texts
MIN_NUMBERS = 0.8  # a column with a lower fraction of numbers is text


@dataclass(frozen=True, slots=True)
class VectorColumns:
    """The 0-based feature and target columns, and the names of all columns."""

    source: tuple[int, ...]
    target: tuple[int, ...]
    names: list[str]
    header: bool

    def names_of(self, columns: tuple[int, ...]) -> list[str]:
        """Return the names of these columns."""
        return [self.names[column] for column in columns]


def read_vectors(
    path: str,
    source_column: str | None = None,
    target_column: str | None = None,
    labels: bool = False,
    others: Sequence[str] = (),
) -> tuple[Pairs, list[str], list[str]]:
    """Return vectors with their targets, the feature names, and the target names.

    By default, the target is the last column, and the features are all other columns. labels:
    whether the target is a tuple of one label instead of numbers. others: columns that are not
    features, such as that of the split.
    """
    text, notes = read_text(path, "rows of numbers")
    shown = show_path(path)
    rows = recognize(path, text, notes).read_rows(shown, text, notes)
    table = _find_table(shown, rows, source_column, target_column, others)
    if labels and len(table.target) > 1:
        raise UserError(f"--target-column {target_column}: expected one column of labels")
    line, first = rows[0]
    if len(first) > len(table.names):
        raise_bad_lines(shown, [(line, f"expected {len(table.names)} columns, found {len(first)}")])
    features, targets = table.names_of(table.source), table.names_of(table.target)
    if table.header:
        if source_column is None:  # otherwise find_columns has checked the names
            check_distinct(shown, line, table.names, list(filter(is_name, features + targets)))
        notes.append(f"first line is a header: {', '.join(table.names)}")
    notes.append(f"features: {len(features):,}; target: column {', '.join(targets)}")
    pairs = _vector_pairs(shown, rows[table.header :], table, labels)
    if not pairs:
        raise UserError(f"{shown}: no rows of numbers, only a header")
    return Pairs(stem(path), shown, pairs, notes), features, targets


def looks_like_vectors(
    path: str,
    source_column: str | None = None,
    target_column: str | None = None,
    others: Sequence[str] = (),
) -> bool:
    """Return whether the first rows of a CSV or TSV file have numbers in all feature columns.

    Missing values count as numbers, and `read_vectors` reports them later. With several columns,
    up to 20% of the cells of a column may be other text. Return False for stdin, which can be read
    only once.
    """
    if path == "-":
        return False
    text = "\n".join(itertools.islice(read_lines(path), MAX_ROWS + 1))
    if not text.strip():
        return False
    found = recognize(path, text, [])
    try:
        rows = found.read_rows(path, text, [])
        table = _find_table(path, rows, source_column, target_column, others)
    except UserError:
        return False  # the actual reader raises the error again
    cells = [
        [cells[column] for _, cells in rows[table.header :] if column < len(cells)]
        for column in table.source
    ]
    fraction = MIN_NUMBERS if len(cells) > 1 else 1.0  # a single column may well be texts
    return all(
        any(number(cell) is not None for cell in column)
        and sum(not is_name(cell) for cell in column) >= fraction * len(column)
        for column in cells
    )


def numbers(
    cells: Sequence[object], names: Sequence[str], line: int, problems: Problems
) -> tuple[float, ...]:
    """Return the cells as numbers; append cells that are not finite, or too large, to problems."""
    found = []
    for cell, name in zip(cells, names, strict=True):
        value = number(cell)
        if value is None:
            shown = "nothing" if cell is None or not str(cell).strip() else repr(cell)
            problems.append((line, f"column {name}: expected a finite number, found {shown}"))
        elif abs(value) > MAX_NUMBER:
            problem = f"expected a number from {-MAX_NUMBER:g} to {MAX_NUMBER:g}, found {cell}"
            problems.append((line, f"column {name}: {problem}; fix it, or rescale the column"))
        else:
            found.append(value)
    return tuple(found)


def _find_table(
    path: str, rows: list[Row], source: str | None, target: str | None, others: Sequence[str]
) -> VectorColumns:
    """Return the feature and target columns.

    The first row is a header if the user chose a column by name, or if it names a feature.
    """
    line, first = rows[0]
    skipped = [find_columns(path, line, "split", other, first) for other in others]
    used = [at for at in range(len(first)) if all(at not in columns for columns, _ in skipped)]
    targets, target_named = (
        find_columns(path, line, "target", target, first) if target else (tuple(used[-1:]), False)
    )
    rest = tuple(column for column in used if column not in targets)
    features, source_named = (
        find_columns(path, line, "source", source, first) if source else (rest, False)
    )
    for side, columns in (("source", features), ("target", targets)):
        if max(columns, default=0) >= len(first):
            raise UserError(
                f"{path} line {line}: --{side}-column: no column {max(columns) + 1}: found "
                f"{len(first)} columns"
            )
    if not features:
        raise UserError(f"{path}: all columns are targets: expected at least one feature")
    if both := set(features) & set(targets):
        raise UserError(
            f"{path}: column {min(both) + 1} is both feature and target",
            help="choose with --source-column and --target-column",
        )
    named = source_named or target_named or any(is_named for _, is_named in skipped)
    header = named or any(is_name(first[column]) for column in features)
    count = Counter(len(cells) for _, cells in rows).most_common(1)[0][0]
    names = [name.strip() for name in first] if header else [str(n + 1) for n in range(count)]
    return VectorColumns(features, targets, names, header)


def _vector_pairs(path: str, rows: list[Row], table: VectorColumns, labels: bool) -> list[Pair]:
    features, targets = table.names_of(table.source), table.names_of(table.target)
    pairs = []
    problems: Problems = []
    for line, cells in rows:
        if len(cells) != len(table.names):
            problems.append((line, f"expected {len(table.names)} columns, found {len(cells)}"))
            continue
        source = numbers([cells[column] for column in table.source], features, line, problems)
        target = [cells[column] for column in table.target]
        if not labels:
            pairs.append(Pair(source, numbers(target, targets, line, problems), line))
            continue
        label = target[0].strip()
        if not label:
            problems.append((line, f"column {targets[0]}: expected a label, found nothing"))
        pairs.append(Pair(source, (label,), line))
    raise_bad_lines(path, problems)
    return pairs
