"""Read pairs of any format block by block.

A block is a range of complete lines; a small file is a single block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from regard.core.errors import UserError
from regard.data.reading.json_lines import JsonPairs
from regard.data.reading.lines import (
    MAX_SHOWN,
    check_line_ends,
    note_blank,
    note_crlf,
    raise_bad_lines,
)
from regard.data.reading.pair_format import (
    AlignedPairs,
    Names,
    PairFormat,
    ParsedBlock,
    Problems,
    Row,
    check_sides,
)
from regard.data.reading.table_formats import CsvPairs, TsvPairs

FORMATS: tuple[type[PairFormat], ...] = (TsvPairs, CsvPairs, JsonPairs)
LAYOUTS = {one.__name__: one for one in FORMATS} | {"AlignedPairs": AlignedPairs}
BY_SUFFIX = {suffix: one for one in FORMATS for suffix in one.suffixes}

Block = tuple[int, list[str]]  # the first line number, and the text of each file


class LineEnds(NamedTuple):
    """The number of lines, of LF and of CR characters in a text."""

    lines: int
    newlines: int
    returns: int


class PairReader:
    """A reader that parses and checks the blocks of one or two files, and collects notes.

    shown: file names in messages. kind: format of the files. names: columns passed by the user.
    ends: line ends per file. read_blocks: returns an iterator over all blocks at each call.
    """

    def __init__(
        self,
        shown: Sequence[str],
        kind: type[PairFormat],
        names: Names,
        ends: Sequence[LineEnds],
        read_blocks: Callable[[], Iterable[Block]],
    ) -> None:
        self.shown, self.names, self.ends, self.read_blocks = shown, names, ends, read_blocks
        self.path = " and ".join(shown)
        self.layout = kind()
        self.notes: list[str] = []
        self.column_notes: list[str] = []  # appended last to notes
        self.first: Row | None = None
        self.widths: Counter[int] = Counter()
        self.problems: Problems = []
        self.bad = self.rows = self.blank = 0
        self.returns = [0] * len(shown)
        self.filled = [False, False]

    def blocks(self) -> Iterator[ParsedBlock]:
        """Yield the pairs of each block; at the end, raise UserError if there were bad lines."""
        for line, texts in self.read_blocks():
            if line == 1:
                self.layout = self.layout.open(self.path, texts[0], self.notes)
                self._check_lines()
            if self.first is None:
                self._choose(texts[0], line)
            block = self.layout.parse(texts, line)
            self._count(block)
            yield block
        self._check_all()

    def _check_lines(self) -> None:
        """Raise UserError for CR line ends, or if the files have different numbers of lines."""
        if self.layout.by_lines:
            for shown, ends in zip(self.shown, self.ends, strict=True):
                check_line_ends(shown, ends.newlines, ends.returns)
        if len({ends.lines for ends in self.ends}) > 1:
            (source, target), (left, right) = self.shown, self.ends
            raise UserError(
                f"{source} has {left.lines:,} lines, {target} has {right.lines:,}: expected the "
                "same number",
                help="look for a missing line, or one that is split in two",
            )

    def _choose(self, text: str, line: int) -> None:
        """Determine the columns from the first row or object."""
        self.first = self.layout.first(text, line)
        if self.first is None:
            return
        try:
            self.layout = self.layout.choose(self.path, self.first, self.names, self.column_notes)
        except UserError:  # bad lines, if any, are the error to report first
            for number, texts in self.read_blocks():
                self._count(self.layout.parse(texts, number))
            raise_bad_lines(self.path, self.problems, count=self.bad)
            self.layout.strict(self.path, self.first, self.widths, [])
            raise

    def _count(self, block: ParsedBlock) -> None:
        for at, side in enumerate((block.sources, block.targets)):
            self.filled[at] = self.filled[at] or any(map(str.strip, side))
        self.rows += len(block.sources)
        self.blank += block.blank
        self.widths.update(block.widths)
        self.returns = [sum(pair) for pair in zip(self.returns, block.returns, strict=True)]
        self._add_problems(block)

    def _add_problems(self, block: ParsedBlock) -> None:
        self.problems = [*self.problems, *block.problems][:MAX_SHOWN]
        self.bad += len(block.problems)

    def _check_all(self) -> None:
        """Raise UserError for bad lines, wrong numbers of columns, or only empty texts."""
        raise_bad_lines(self.path, self.problems, count=self.bad)
        assert self.first is not None  # otherwise every line was bad
        if len(self.shown) == 1:
            self.notes += [*note_crlf(*self.returns), *note_blank(self.blank)]
        strict = self.layout.strict(self.path, self.first, self.widths, self.column_notes)
        if strict is not None:
            for line, texts in self.read_blocks():
                self._add_problems(strict.parse(texts, line))
            raise_bad_lines(self.path, self.problems, count=self.bad)
        self.notes += self.column_notes
        check_sides(self.path, self.rows, self.filled)


def recognize(path: str, text: str, notes: list[str]) -> type[PairFormat]:
    """Return the format by file name suffix, or guess it from the first lines; add a note."""
    extension = Path(path.removesuffix(".gz")).suffix.lower()
    if extension in (".conllu", ".conll-u"):
        raise UserError(f"{path}: CoNLL-U has tagged words, not pairs", help="add --task tag")
    known = None if path == "-" else BY_SUFFIX.get(extension)
    found = known or _guess(text)
    notes.insert(0, f"read as {found.name}{'' if known else ', guessed from the first lines'}")
    return found


def _guess(text: str) -> type[PairFormat]:
    first = [line for line in text[:100_000].split("\n")[:20] if line.strip()]
    if first[0].lstrip().startswith("{"):
        return JsonPairs
    commas = all("," in line for line in first) and not any("\t" in line for line in first)
    return CsvPairs if commas else TsvPairs
