"""The contract of a format of tagged sentences: from lines to tokens and tags, and back."""

from __future__ import annotations

import difflib
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import Self

from regard.core.errors import UserError
from regard.core.formatting import count_noun
from regard.data.reading.columns import CHOOSE
from regard.data.reading.pair_format import Names, Problems

DOCUMENT = "-DOCSTART-"
CELL = re.compile(r"[^ ]+")
TOKENS = ("tokens", "words", "sentence", "text")
TAGS = ("tags", "labels")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: its tokens, its tags if it has any, and its lines as they stand in the file.

    One without tokens only passes lines on: a header, comments, blank lines.
    """

    tokens: tuple[str, ...]
    tags: tuple[str, ...] | None
    line: int  # of the first token, from 1
    raw: tuple[str, ...]


@dataclass(frozen=True)
class TaggedLayout(ABC):
    """How a file writes its sentences; columns are counted from 0. name: in messages; suffixes: of
    files that are surely so."""

    kind: ClassVar[str]
    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = ()
    may_be_named: ClassVar[bool] = False  # whether the first line may have names of columns
    no_tag: ClassVar[str | None] = None  # what stands in the place of a tag that is missing

    source: int = 0
    target: int | None = None  # None: no tags yet, they become a new last column
    width: int = 1  # columns of each line
    tabs: bool = True  # between columns, else spaces
    header: bool = False
    keys: tuple[str, str] = ("tokens", "tags")  # of JSON objects
    notes: tuple[str, ...] = ()  # on what was recognized

    @abstractmethod
    def parse(
        self, lines: Iterable[str], problems: Problems, need_tags: bool
    ) -> Iterator[Sentence]:
        """The sentences, each as soon as its last line is there; bad lines go to `problems`.

        With `need_tags` a token without a tag is a bad line, else the sentence has no tags.
        """

    @abstractmethod
    def filled(self, sentence: Sentence, tags: Sequence[str]) -> Iterable[str]:
        """The lines of a sentence with these tags."""

    @abstractmethod
    def note_skipped(self, lines: list[str]) -> list[str]:
        """Notes on the lines that are no part of any sentence."""

    def render(self, sentence: Sentence, tags: Sequence[str]) -> str:
        """The sentence in its own format with these tags, line ends and all."""
        if len(tags) != len(sentence.tokens):
            tokens = count_noun(len(sentence.tokens), "token")
            raise ValueError(f"{tokens} but {count_noun(len(tags), 'tag')}")
        lines = self.filled(sentence, tags) if sentence.tokens else sentence.raw
        return "".join(line + "\n" for line in lines)

    def cells(self, line: str) -> list[str]:
        """The columns of a line."""
        return line.split("\t") if self.tabs else CELL.findall(line)

    def bad_width(self, cells: list[str]) -> str | None:
        """What is wrong with the number of columns, if anything."""
        between = " between tabs" if self.tabs else ""
        expected = f"{count_noun(self.width, 'column')}{between} expected"
        return None if len(cells) == self.width else f"{expected}, {len(cells)} found"

    def fill(self, line: str, value: str) -> str:
        """The line with this value in the target column; all else stays as it is."""
        if self.target is None:
            return line + ("\t" if self.tabs else " ") + value
        if self.tabs:
            cells = line.split("\t")
            cells[self.target] = value
            return "\t".join(cells)
        start, end = list(CELL.finditer(line))[self.target].span()
        return line[:start] + value + line[end:]

    @classmethod
    def of_columns(
        cls,
        path: str,
        places: tuple[int, int],
        names: list[str],
        note: str,
        tabs: bool = True,
        header: bool = False,
    ) -> Self:
        """The layout of a table with these columns of tokens and tags, by their places."""
        start, end = places
        if start == end:
            raise UserError(
                f"{path}: tokens and tags are the same column ({names[start]}); {CHOOSE}"
            )
        notes = [note, f"tokens are column {names[start]}, tags are column {names[end]}"]
        if header:
            notes.append(f"first line is a header: {', '.join(names)}")
        return cls(start, end, len(names), tabs, header, notes=tuple(notes))

    @classmethod
    def choose(cls, path: str, lines: list[str], columns: Names, tags: bool, note: str) -> Self:
        """The layout of a file with these first lines; with `tags` it must have tags.

        Of a table the first column to the last, unless chosen by number or, where the first line
        may have names, by header.
        """
        words = [line for line in lines if line.strip() and not line.startswith(DOCUMENT)]
        tabs = any("\t" in line for line in words)
        rows = [line.split("\t") if tabs else CELL.findall(line) for line in words]
        width = _width(path, lines, [len(cells) for cells in rows], tabs, tags)
        names = [name.strip() for name in rows[0]] if cls.may_be_named else []
        source, target = columns
        if set(names) & set(TOKENS) and set(names) & set(TAGS):
            source = source or next(name for name in names if name in TOKENS)
            target = target or next(name for name in names if name in TAGS)
        header = source in names or target in names

        start = _place(path, "source", source or "1", width, names)
        # A column of tags is missing where none is needed: it will be added.
        end = _place(path, "target", target, width + (not tags), names) if target else width - 1
        if end == width or (end == start and not (tags or target)):
            notes = (note, f"tokens are column {start + 1}, tags become column {width + 1}")
            return cls(start, None, width, tabs, header, notes=notes)
        labels = names if header else [str(place + 1) for place in range(width)]
        return cls.of_columns(path, (start, end), labels, note, tabs, header)


def _width(path: str, lines: list[str], widths: list[int], tabs: bool, tags: bool) -> int:
    """The number of columns: the commonest where tags are needed, else that of the first line."""
    if not tags or not widths:
        return widths[0] if widths else 1
    width, found = Counter(widths).most_common(1)[0]
    if width == 1 or (not tabs and found * 2 <= len(widths)):
        number = next(number for number, line in enumerate(lines, 1) if line.strip())
        raise UserError(
            f"{path} line {number}: no tags found, neither here nor below; a token and its tag "
            f"in each line are expected, or in each line tokens, a tab and their tags"
        )
    return width


def _place(path: str, side: str, column: str, width: int, names: list[str]) -> int:
    if column in names:
        return names.index(column)
    if column.isdecimal() and 0 < int(column) <= width:
        return int(column) - 1
    near = difflib.get_close_matches(column, names, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    raise UserError(
        f"{path}: --{side}-column: no column '{column}'; a number from 1 to {width} is expected"
        f"{hint}"
    )


def split_words(text: str) -> tuple[str, ...]:
    """The words between spaces; only the space itself separates."""
    return tuple(word for word in text.split(" ") if word)
