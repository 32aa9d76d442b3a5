"""The contract of a format of pairs: how a block of lines becomes sources and targets."""

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

Names = tuple[str | None, str | None]  # columns of source and target, as the user gave them
Problems = list[tuple[int, str]]  # line, what is wrong
Row = tuple[int, list[str]]  # line, cells or keys


@dataclass
class ParsedBlock:
    """The pairs of a block: sources, targets and the lines they began in; and what was odd."""

    sources: list[Any]
    targets: list[Any]
    lines: Sequence[int]
    blank: int = 0
    returns: tuple[int, ...] = ()  # lines that ended in CR LF, of each file
    widths: Counter[int] = field(default_factory=Counter)  # numbers of columns
    problems: Problems = field(default_factory=list)


@dataclass(frozen=True)
class PairFormat(ABC):
    """A way to write pairs. name: in messages; suffixes: of its files; quote: a mark that may hide
    line ends, so that a file with it cannot be cut into blocks; by_lines: whether CR alone ends no
    line."""

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = ()
    quote: ClassVar[str | None] = None
    by_lines: ClassVar[bool] = True
    pair_a_line: ClassVar[bool] = True  # whether lines that are not blank hold one pair each

    @classmethod
    def open(cls, path: str, text: str, notes: list[str]) -> Self:
        """The format as a file with this beginning writes it."""
        return cls()

    def first(self, text: str, line: int) -> Row | None:
        """What decides about the columns: the first row, or the keys of the first object."""
        return line, []

    def choose(self, path: str, first: Row, names: Names, notes: list[str]) -> Self:
        """The format with the columns chosen."""
        return self

    @abstractmethod
    def parse(self, texts: Sequence[str], line: int) -> ParsedBlock:
        """The pairs of a block that begins in this line; texts: of each file."""

    def strict(self, path: str, first: Row, widths: Counter[int], notes: list[str]) -> Self | None:
        """The format that names rows with a wrong number of columns; None where there are none."""
        return None

    @classmethod
    def values(
        cls, path: str, text: str, names: Names, notes: list[str], problems: Problems, apart: bool
    ) -> tuple[ParsedBlock, list[str]]:
        """Texts with labels or numbers, and what the targets are called. apart: numbers, which
        stay apart where there are several columns."""
        raise NotImplementedError

    @classmethod
    def read_rows(cls, path: str, text: str, notes: list[str]) -> list[Row]:
        """The rows of a table of two columns or more, blank lines left out."""
        raise NotImplementedError


class AlignedPairs(PairFormat):
    """Two files, each line its own side."""

    name = "aligned"

    def parse(self, texts: Sequence[str], line: int) -> ParsedBlock:
        (left, first), (right, second) = map(split_line_ends, texts)
        return ParsedBlock(left, right, range(line, line + len(left)), returns=(first, second))


def check_sides(path: str, count: int, filled: Sequence[bool]) -> None:
    """Raises an error if there are no pairs or if a side is filled in none of them."""
    if not count:
        raise UserError(f"{path}: no pairs, only a header; pairs of source and target are expected")
    for side, found in zip(("source", "target"), filled, strict=True):
        if not found:
            raise UserError(
                f"{path}: the {side} is empty in all {count:,} pairs; is it another column? "
                f"{CHOOSE}"
            )
