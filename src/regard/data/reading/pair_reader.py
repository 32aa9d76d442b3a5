"""One reader of pairs for all formats, block by block; a small file is a single block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from regard.core.errors import UserError
from regard.data.reading.json_lines import JsonPairs
from regard.data.reading.lines import SHOWN, note_blank, note_returns, refuse, refuse_old_mac
from regard.data.reading.pair_format import (
    AlignedPairs,
    Cut,
    Names,
    PairFormat,
    Problems,
    Row,
    refuse_sides,
)
from regard.data.reading.pair_tables import CsvPairs, TsvPairs

FORMATS: tuple[type[PairFormat], ...] = (TsvPairs, CsvPairs, JsonPairs)
LAYOUTS = {one.__name__: one for one in FORMATS} | {"AlignedPairs": AlignedPairs}
BY_SUFFIX = {suffix: one for one in FORMATS for suffix in one.suffixes}

Block = tuple[int, list[str]]  # the first line, and the text in each file


class LineEnds(NamedTuple):
    """How many lines a text has, how many LF and how many CR."""

    lines: int
    newlines: int
    returns: int


class PairReader:
    """One pass over the blocks of a file or of two: checks them, and counts what there is to note.

    ends: how the lines of each file end; blocks: gives the blocks, again at each call.
    """

    def __init__(
        self,
        shown: Sequence[str],
        kind: type[PairFormat],
        names: Names,
        ends: Sequence[LineEnds],
        blocks: Callable[[], Iterable[Block]],
    ) -> None:
        self.shown, self.names, self.ends, self.blocks = shown, names, ends, blocks
        self.path = " and ".join(shown)
        self.layout = kind()
        self.notes: list[str] = []
        self.chosen: list[str] = []  # notes on columns, which come last
        self.first: Row | None = None
        self.widths: Counter[int] = Counter()
        self.problems: Problems = []
        self.bad = self.rows = self.blank = 0
        self.returns = [0] * len(shown)
        self.filled = [False, False]

    def cuts(self) -> Iterator[Cut]:
        """The pairs of each block; after the last one an error for what is wrong with them all."""
        for line, texts in self.blocks():
            if line == 1:
                self.layout = self.layout.open(self.path, texts[0], self.notes)
                self._refuse_shape()
            if self.first is None:
                self._choose(texts[0], line)
            cut = self.layout.cut(texts, line)
            self._count(cut)
            yield cut
        self._refuse()

    def _refuse_shape(self) -> None:
        """Raises an error for files whose lines cannot be pairs."""
        if self.layout.by_lines:
            for shown, ends in zip(self.shown, self.ends, strict=True):
                refuse_old_mac(shown, ends.newlines, ends.returns)
        if len({ends.lines for ends in self.ends}) > 1:
            (source, target), (left, right) = self.shown, self.ends
            raise UserError(
                f"{source} has {left.lines:,} lines, {target} has {right.lines:,}: the same number "
                f"is expected; look for a line that was lost or broken in two"
            )

    def _choose(self, text: str, line: int) -> None:
        """Lets the first row or object decide about the columns."""
        self.first = self.layout.first(text, line)
        if self.first is None:
            return
        try:
            self.layout = self.layout.choose(self.path, self.first, self.names, self.chosen)
        except UserError:  # what is wrong with the table itself comes first
            for number, texts in self.blocks():
                self._count(self.layout.cut(texts, number))
            refuse(self.path, self.problems, count=self.bad)
            self.layout.strict(self.path, self.first, self.widths, [])
            raise

    def _count(self, cut: Cut) -> None:
        for at, side in enumerate((cut.sources, cut.targets)):
            self.filled[at] = self.filled[at] or any(map(str.strip, side))
        self.rows += len(cut.sources)
        self.blank += cut.blank
        self.widths.update(cut.widths)
        self.returns = [sum(pair) for pair in zip(self.returns, cut.returns, strict=True)]
        self._add_problems(cut)

    def _add_problems(self, cut: Cut) -> None:
        self.problems = [*self.problems, *cut.problems][:SHOWN]
        self.bad += len(cut.problems)

    def _refuse(self) -> None:
        """Raises an error for what is wrong with the whole."""
        refuse(self.path, self.problems, count=self.bad)
        assert self.first is not None  # else each line was bad
        if len(self.shown) == 1:
            self.notes += [*note_returns(*self.returns), *note_blank(self.blank)]
        strict = self.layout.strict(self.path, self.first, self.widths, self.chosen)
        if strict is not None:
            for line, texts in self.blocks():
                self._add_problems(strict.cut(texts, line))
            refuse(self.path, self.problems, count=self.bad)
        self.notes += self.chosen
        refuse_sides(self.path, self.rows, self.filled)


def recognize(path: str, text: str, notes: list[str]) -> type[PairFormat]:
    """The format by the name of the file, or guessed where the name does not say; it is noted."""
    extension = Path(path.removesuffix(".gz")).suffix.lower()
    if extension in (".conllu", ".conll-u"):
        raise UserError(f"{path}: CoNLL-U holds words with their tags: add --task tag")
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
