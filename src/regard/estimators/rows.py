"""Conversion of X and y to lists: of sequences, NumPy arrays, pandas columns and tables.

pandas is not imported: its objects, like those of other libraries, convert themselves to arrays.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from regard.core.errors import UserError


def to_rows(values: Any, name: str = "X") -> list[Any]:
    """Return the elements of a column, or the rows of a table, as a list.

    A table with one column of texts is the same as this column. name: the argument, for errors.
    """
    if isinstance(values, str):
        raise UserError(f"{name}: expected a list of texts, found one text", help="pass [text]")
    if hasattr(values, "tocsr"):
        raise UserError(f"{name}: sparse matrices are not supported", help=f"pass {name}.toarray()")
    if hasattr(values, "__array__"):
        values = np.atleast_1d(np.asarray(values))
        if values.ndim == 2 and values.shape[1] == 1 and _has_texts(values):
            values = values[:, 0]
    if not isinstance(values, Iterable) or isinstance(values, Mapping):
        raise UserError(
            f"{name}: expected a list, an array or a pandas column, found {type(values).__name__}"
        )
    return list(values)


def _has_texts(values: np.ndarray) -> bool:
    return values.dtype.kind in "UOT" and any(isinstance(value, str) for value in values.flat)


def to_columns(X: Any, y: Any) -> tuple[list[Any], list[Any]]:
    """Return sources and targets: X and y, or the first and second elements of pairs X."""
    if y is None:
        rows = to_rows(X)
        for number, row in enumerate(rows, 1):
            if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != 2:
                raise UserError(
                    f"example {number}: expected a pair (source, target), found {row!r}",
                    help="pass pairs, a table with two columns, or X and y",
                )
        return [row[0] for row in rows], [row[1] for row in rows]
    sources, targets = to_rows(X), to_rows(y, "y")
    if len(sources) != len(targets):
        raise UserError(f"X has {len(sources)} examples, but y has {len(targets)}")
    return sources, targets


def check_present(value: Any, number: int, what: str) -> None:
    """Raise UserError if a value of an example is missing: None, NaN, or NA of pandas."""
    is_nan = isinstance(value, float | np.floating) and math.isnan(value)
    if value is None or is_nan or type(value).__name__ in ("NAType", "NaTType"):
        raise UserError(
            f"example {number}: expected {what}, found a missing value ({value})",
            help="drop such examples, for example with dropna() of pandas",
        )
