"""The features of nodes as a table has them: indices, numbers, or texts.

N nodes, F numbers per node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from regard.core.errors import UserError
from regard.data.reading.columns import number
from regard.data.reading.graph import Bags, Features
from regard.data.reading.lines import raise_bad_lines
from regard.data.reading.pair_format import Problems
from regard.data.reading.vectors import MAX_NUMBER, MIN_NUMBERS

MAX_INDEX = 10_000_000  # a larger table of vectors does not fit in memory
KINDS = ("bag", "numbers", "text")


def read_features(
    path: str, lines: Sequence[int], cells: list[list[str]], kind: str | None, notes: list[str]
) -> Features:
    """Return the features of all nodes. cells: of each node, one or several.

    kind: bag, numbers or text; None: what most cells contain. Append to notes what was found.
    """
    several = len(cells[0]) > 1
    values = [_numbers(row) for row in cells]
    kind = kind or _kind(values, cells, several)
    if kind == "text":
        texts = tuple(" ".join(row).strip() for row in cells)
        notes.append(f"features: words of texts{_count_empty([bool(text) for text in texts])}")
        return texts
    problems: Problems = []
    if kind == "bag":
        bags = _bags(lines, values, cells, problems)
        raise_bad_lines(path, problems, help="fix the lines, or pass task.source.features=text")
        size = int(bags.flat.max(initial=-1)) + 1
        empty = _count_empty((bags.lengths > 0).tolist())
        notes.append(f"features: {size:,} indices, {bags.lengths.mean():.1f} per node{empty}")
        return bags
    found = _matrix(lines, values, cells, problems)
    raise_bad_lines(path, problems, help="fix the lines, or pass task.source.features=text")
    notes.append(f"features: {found.shape[1]:,} numbers per node")
    return found


def _numbers(row: list[str]) -> list[float] | None:
    """Return the blank-separated numbers of all cells, or None if a part is not a number."""
    parts = [part for cell in row for part in cell.split()]
    found = [number(part) for part in parts]
    return None if any(value is None for value in found) else found  # type: ignore[return-value]


def _kind(values: list[list[float] | None], cells: list[list[str]], several: bool) -> str:
    """Return what most cells contain. Whole numbers of different count are indices."""
    filled = [value for value in values if value != []]
    known = [value for value in filled if value]
    if not filled or len(known) < MIN_NUMBERS * len(filled):
        return "text"
    whole = sum(all(one == int(one) for one in value) for value in known)
    sizes = Counter(map(len, known))
    regular = sizes.most_common(1)[0][1] >= MIN_NUMBERS * len(known)
    repeats = any(len(set(value)) < len(value) for value in known)
    if several or whole < MIN_NUMBERS * len(known) or (regular and (repeats or 1 in sizes)):
        return "numbers"
    return "bag"


def _bags(
    lines: Sequence[int],
    values: list[list[float] | None],
    cells: list[list[str]],
    problems: Problems,
) -> Bags:
    flat: list[int] = []
    lengths = []
    for line, value, row in zip(lines, values, cells, strict=True):
        if value is None:
            problems.append((line, f"expected indices, found {' '.join(row)!r:.60}"))
        for one in value or ():
            if one != int(one) or one < 0:
                problems.append((line, f"expected indices >= 0, found {one:g}"))
            elif one > MAX_INDEX:
                problems.append((line, f"expected indices up to {MAX_INDEX:,}, found {one:.0f}"))
        lengths.append(len(value or ()))
        flat += [int(one) for one in value or () if abs(one) <= MAX_INDEX]
    if problems:
        return Bags(np.zeros(0, np.int64), np.zeros(0, np.int64))
    return Bags(np.array(flat, np.int64), np.array(lengths, np.int64))


def _matrix(
    lines: Sequence[int],
    values: list[list[float] | None],
    cells: list[list[str]],
    problems: Problems,
) -> np.ndarray:
    width = Counter(len(value) for value in values if value).most_common(1)
    size = width[0][0] if width else 0
    for line, value, row in zip(lines, values, cells, strict=True):
        if value is None:
            problems.append((line, f"expected {size} numbers, found {' '.join(row)!r:.60}"))
        elif len(value) != size:
            problems.append(
                (line, f"expected {size} numbers, as most nodes have, found {len(value)}")
            )
        elif any(abs(one) > MAX_NUMBER for one in value):
            problems.append((line, f"expected numbers up to {MAX_NUMBER:g}"))
    if problems:
        return np.zeros((0, size))
    if not size:
        raise UserError("no node has features")
    return np.array(values, np.float64)


def _count_empty(filled: list[bool]) -> str:
    empty = filled.count(False)
    return f"; {empty:,} nodes have none" if empty else ""
