"""Read the column of a table that assigns each row to a split, such as train, dev or test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from regard.core.errors import UserError
from regard.core.suggest import did_you_mean
from regard.data.reading.columns import CHOOSE, find_columns
from regard.data.reading.json_lines import JsonPairs, name_of, objects_of
from regard.data.reading.lines import raise_bad_lines, read_text, show_path, split_line_ends
from regard.data.reading.pair_format import Problems, Row
from regard.data.reading.pair_reader import recognize
from regard.data.reading.pair_tables import TablePairs
from regard.data.reading.read import Pair, Pairs

TRAIN = ("train", "training")
DEV = ("dev", "val", "valid", "validation")
Splits = dict[int, str]  # the split of each row by its line number


def read_splits(path: str, column: str) -> Splits:
    """Return the split of each row of a table; raise UserError if a row has none.

    column: a 1-based index, a header name or a JSON key.
    """
    return read_cells(path, column, "--split-column", "split")


def read_cells(path: str, column: str, option: str, noun: str) -> dict[int, str]:
    """Return the values of a column by line number; raise UserError if a row has none.

    option, noun: name of the option and of a value, for messages.
    """
    shown = show_path(path)
    if Path(path.removesuffix(".gz")).suffix.lower() in (".conllu", ".conll-u"):
        raise UserError(f"{shown}: {option}: CoNLL-U has no column of {noun}s")
    text, _ = read_text(path)
    kind = recognize(path, text, [])
    problems: Problems = []
    if issubclass(kind, TablePairs):
        rows = kind.open(shown, text, []).rows(text).rows
        found = _table_cells(shown, rows, (column, option, noun), problems)
    else:
        assert issubclass(kind, JsonPairs)
        found = _json_values(text, column, problems)
    for line, split in found.items():
        if not split:
            problems.append((line, f"{option} {column}: expected a {noun}, found nothing"))
    raise_bad_lines(shown, sorted(problems))
    return found


def _table_cells(
    path: str, rows: list[Row], names: tuple[str, str, str], problems: Problems
) -> dict[int, str]:
    """Return the values of a column. names: of column, option and values."""
    column, option, noun = names
    line, first = rows[0]
    (index, *more), named = find_columns(path, line, noun, column, first)
    if more:
        raise UserError(f"{option} {column}: expected one column")
    found = {}
    for number, cells in rows[1 if named else 0 :]:
        if index < len(cells):
            found[number] = cells[index].strip()
        else:
            expected = f"expected at least {index + 1} columns ({option} {column})"
            problems.append((number, f"{expected}, found {len(cells)}"))
    return found


def _json_values(text: str, column: str, problems: Problems) -> dict[int, str]:
    records, _ = objects_of(split_line_ends(text)[0])
    found = {}
    for line, record in records:
        value = record.get(column, "")
        if isinstance(value, str):
            found[line] = value.strip()
        else:
            problems.append((line, f"'{column}': expected a string, found {name_of(value)}"))
    return found


def count_splits(pairs: Sequence[Pair], splits: Splits) -> Counter[str]:
    """Return the number of pairs by split, in order of occurrence. A header row has no split."""
    return Counter(splits[pair.line] for pair in pairs if pair.line in splits)


def _check_sides(pairs: Pairs, splits: Splits) -> None:
    """Raise UserError if the column of splits is also the source or the target."""
    rows = [pair for pair in pairs.pairs if pair.line in splits]
    for side in ("source", "target"):
        values = [(getattr(pair, side), splits[pair.line]) for pair in rows]
        if values and all(value in (split, (split,)) for value, split in values):
            raise UserError(
                f"{pairs.path}: the {side} is the same column as the split", help=CHOOSE
            )


def keep_split(pairs: Pairs, splits: Splits, split: str | None) -> Pairs:
    """Return the pairs of one split, or all. Raise UserError if there are none."""
    _check_sides(pairs, splits)
    counts = count_splits(pairs.pairs, splits)
    if split is None:
        kept = [pair for pair in pairs.pairs if pair.line in splits]
        note = f"rows of all splits: {show_counts(counts)}; --split NAME selects one"
        return Pairs(pairs.name, pairs.path, kept, [*pairs.notes, note])
    if split not in counts:
        raise UserError(
            f"{pairs.path}: --split {split}: no row has this split; found {show_counts(counts)}"
            f"{did_you_mean(split, counts)}"
        )
    kept = [pair for pair in pairs.pairs if splits.get(pair.line) == split]
    note = f"split {split}: {len(kept):,} of {counts.total():,} rows"
    return Pairs(pairs.name, pairs.path, kept, [*pairs.notes, note])


def train_and_dev(pairs: Pairs, splits: Splits) -> tuple[list[Pair], list[Pair], list[str]]:
    """Return the training set, the dev set and a note that counts all splits.

    Raise UserError if no row is for training.
    """
    _check_sides(pairs, splits)
    counts = count_splits(pairs.pairs, splits)
    train, dev = (
        [pair for pair in pairs.pairs if splits.get(pair.line, "").lower() in names]
        for names in (TRAIN, DEV)
    )
    if not train:
        raise UserError(
            f"{pairs.path}: --split-column: no row has the split {TRAIN[0]}; found "
            f"{show_counts(counts)}",
            help=f"training reads {' or '.join(TRAIN)}, validation {', '.join(DEV)}",
        )
    unused = Counter({k: n for k, n in counts.items() if k.lower() not in (*TRAIN, *DEV)})
    note = f"split column: {len(train):,} rows for training, {len(dev):,} for validation"
    return train, dev, [note + (f"; not used: {show_counts(unused)}" if unused else "")]


def show_counts(counts: Counter[str]) -> str:
    """Return the splits with their numbers of rows, such as "train (140), test (1,000)"."""
    shown = [f"{name} ({count:,})" for name, count in list(counts.items())[:20]]
    return ", ".join(shown) + (f" and {len(counts) - 20:,} more" if len(counts) > 20 else "")
