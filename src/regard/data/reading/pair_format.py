"""The interface of pair formats, which parse a block of lines into sources and targets.

A block is a range of complete lines of a file (or of two aligned files); a small file is one block.
A side is the source or the target. Lines are numbered from 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from typing_extensions import Self

from regard.core.errors import UserError
from regard.data.reading.columns import CHOOSE
from regard.data.reading.lines import split_line_ends

Names = tuple[str | None, str | None]  # source and target columns, as the user passed them
Problems = list[tuple[int, str]]  # line number, message
Row = tuple[int, list[str]]  # line number, cells of a table row or keys of a JSON object


@dataclass
class ParsedBlock:
    """The pairs of a block with their line numbers, and problems. blank: number of blank lines."""

    sources: list[Any]
    targets: list[Any]
    lines: Sequence[int]
    blank: int = 0
    returns: tuple[int, ...] = ()  # CR LF line ends per file
    widths: Counter[int] = field(default_factory=Counter)  # number of rows by number of columns
    problems: Problems = field(default_factory=list)


@dataclass(frozen=True)
class PairFormat(ABC):
    """A file format of pairs.

    name: shown in messages. suffixes: file name suffixes of the format. quote: quotation mark, if
    quoted cells may contain line ends; a file that contains it is not split into blocks. by_lines:
    whether lines must end in LF or CR LF, so that a file with CR only is an error.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = ()
    quote: ClassVar[str | None] = None
    by_lines: ClassVar[bool] = True
    pair_per_line: ClassVar[bool] = True  # whether each line that is not blank is one pair

    @classmethod
    def open(cls, path: str, text: str, notes: list[str]) -> Self:
        """Return the format of a file with this first block."""
        return cls()

    def first(self, text: str, line: int) -> Row | None:
        """Return the first row, or the keys of the first object; None if the text has none.

        This row determines the columns. line: number of the first line of the text.
        """
        return line, []

    def choose(self, path: str, first: Row, names: Names, notes: list[str]) -> Self:
        """Return the format with the columns set. names: columns passed by the user, if any."""
        return self

    def peek(self, text: str, first: Row) -> tuple[str, list[str]]:
        """Return the name of the source column, if it has one, and the sources in a text.

        Bad rows are ignored, because the text may end inside a row. first: the first row.
        """
        return "", []

    @abstractmethod
    def parse(self, texts: Sequence[str], line: int) -> ParsedBlock:
        """Return the pairs of a block. texts: one text per file. line: first line number."""

    def strict(self, path: str, first: Row, widths: Counter[int], notes: list[str]) -> Self | None:
        """Return a format that reports rows with a wrong number of columns; None if all rows fit.

        widths: number of rows by number of columns.
        """
        return None

    @classmethod
    def values(
        cls, path: str, text: str, names: Names, notes: list[str], problems: Problems, apart: bool
    ) -> tuple[ParsedBlock, list[str]]:
        """Return texts with labels or numbers, and the names of the targets.

        apart: whether each target is a list with one cell per target column, as for numbers.
        """
        raise NotImplementedError

    @classmethod
    def read_rows(cls, path: str, text: str, notes: list[str]) -> list[Row]:
        """Return the rows of a table, without blank lines; raise UserError if it has one column."""
        raise NotImplementedError


class AlignedPairs(PairFormat):
    """Two aligned files: line i of the second is the target of line i of the first."""

    name = "aligned"

    def parse(self, texts: Sequence[str], line: int) -> ParsedBlock:
        (left, first), (right, second) = map(split_line_ends, texts)
        return ParsedBlock(left, right, range(line, line + len(left)), returns=(first, second))


def check_sides(path: str, count: int, filled: Sequence[bool]) -> None:
    """Raise UserError if there are no pairs, or if all sources or all targets are empty.

    filled: whether any source, and any target, is not empty.
    """
    if not count:
        raise UserError(f"{path}: no pairs, only a header")
    for side, is_filled in zip(("source", "target"), filled, strict=True):
        if not is_filled:
            raise UserError(
                f"{path}: the {side} is empty in all {count:,} pairs",
                help=f"is it another column? {CHOOSE}",
            )
