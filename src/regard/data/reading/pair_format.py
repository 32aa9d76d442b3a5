"""The interface of pair formats: how a block of lines becomes sources and targets."""

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
Problems = list[tuple[int, str]]  # line, what is wrong
Row = tuple[int, list[str]]  # line, cells or keys


@dataclass
class ParsedBlock:
    """The pairs of a block: sources, targets and their first lines; and problems."""

    sources: list[Any]
    targets: list[Any]
    lines: Sequence[int]
    blank: int = 0
    returns: tuple[int, ...] = ()  # CR LF line ends per file
    widths: Counter[int] = field(default_factory=Counter)  # columns per row
    problems: Problems = field(default_factory=list)


@dataclass(frozen=True)
class PairFormat(ABC):
    """A file format of pairs.

    name: in messages; suffixes: of its files; quote: a mark that may hide line ends, so that a
    file with it cannot be split into blocks; by_lines: whether CR alone does not end a line.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = ()
    quote: ClassVar[str | None] = None
    by_lines: ClassVar[bool] = True
    pair_per_line: ClassVar[bool] = True  # whether every nonblank line is one pair

    @classmethod
    def open(cls, path: str, text: str, notes: list[str]) -> Self:
        """Return the format of a file that starts with this text."""
        return cls()

    def first(self, text: str, line: int) -> Row | None:
        """Return the first row, or the keys of the first object, which determine the columns."""
        return line, []

    def choose(self, path: str, first: Row, names: Names, notes: list[str]) -> Self:
        """Return the format with its columns."""
        return self

    @abstractmethod
    def parse(self, texts: Sequence[str], line: int) -> ParsedBlock:
        """Return the pairs of a block that starts at this line; texts: one per file."""

    def strict(self, path: str, first: Row, widths: Counter[int], notes: list[str]) -> Self | None:
        """Return the format that reports rows with a wrong number of columns; None if all fit."""
        return None

    @classmethod
    def values(
        cls, path: str, text: str, names: Names, notes: list[str], problems: Problems, apart: bool
    ) -> tuple[ParsedBlock, list[str]]:
        """Return texts with labels or numbers, and the names of the targets.

        apart: keep several target columns apart (numbers).
        """
        raise NotImplementedError

    @classmethod
    def read_rows(cls, path: str, text: str, notes: list[str]) -> list[Row]:
        """Return the rows of a table with at least two columns, without blank lines."""
        raise NotImplementedError


class AlignedPairs(PairFormat):
    """Two files, one side per file."""

    name = "aligned"

    def parse(self, texts: Sequence[str], line: int) -> ParsedBlock:
        (left, first), (right, second) = map(split_line_ends, texts)
        return ParsedBlock(left, right, range(line, line + len(left)), returns=(first, second))


def check_sides(path: str, count: int, filled: Sequence[bool]) -> None:
    """Raise UserError if there are no pairs, or if a side is empty in all of them."""
    if not count:
        raise UserError(f"{path}: no pairs, only a header")
    for side, is_filled in zip(("source", "target"), filled, strict=True):
        if not is_filled:
            raise UserError(
                f"{path}: the {side} is empty in all {count:,} pairs",
                help=f"is it another column? {CHOOSE}",
            )
