"""The interface of tagged formats, which parse sentences and write them back with tags.

A layout is a format with its columns or keys.
"""

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
from regard.data.reading.columns import CHOOSE, check_distinct
from regard.data.reading.pair_format import Names, Problems

DOCUMENT = "-DOCSTART-"
CELL = re.compile(r"[^ ]+")
TOKENS = ("tokens", "words", "sentence", "text")
TAGS = ("tags", "labels")


@dataclass(frozen=True, slots=True)
class Sentence:
    """The tokens of one sentence, its tags if any, and its lines in the file (raw).

    Lines without tokens (a header, comments, blank lines) are a Sentence without tokens.
    """

    tokens: tuple[str, ...]
    tags: tuple[str, ...] | None
    line: int  # 1-based line of the first token
    raw: tuple[str, ...]


@dataclass(frozen=True)
class TaggedLayout(ABC):
    """The layout of tagged sentences in a file.

    name: shown in messages. suffixes: file name suffixes of the layout. source, target: 0-based
    columns of tokens and tags.
    """

    kind: ClassVar[str]
    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = ()
    may_be_named: ClassVar[bool] = False  # whether the first line may be a header
    no_tag: ClassVar[str | None] = None  # placeholder for a missing tag

    source: int = 0
    target: int | None = None  # None: no tag column yet; tags are appended as the last one
    width: int = 1  # columns per line
    tabs: bool = True  # whether columns are separated by tabs, not spaces
    header: bool = False
    keys: tuple[str, str] = ("tokens", "tags")  # keys of tokens and tags in JSON objects
    notes: tuple[str, ...] = ()  # what was recognized, for the user

    @abstractmethod
    def parse(
        self, lines: Iterable[str], problems: Problems, need_tags: bool
    ) -> Iterator[Sentence]:
        """Yield each sentence as soon as its last line is read; append bad lines to problems.

        need_tags: whether a token without a tag is a bad line.
        """

    @abstractmethod
    def filled(self, sentence: Sentence, tags: Sequence[str]) -> Iterable[str]:
        """Return the lines of a sentence with these tags filled in."""

    @abstractmethod
    def note_skipped(self, lines: list[str]) -> list[str]:
        """Return notes for the user on skipped lines."""

    def render(self, sentence: Sentence, tags: Sequence[str]) -> str:
        """Return the sentence as text in this layout with these tags, line ends included."""
        if len(tags) != len(sentence.tokens):
            tokens = count_noun(len(sentence.tokens), "token")
            raise ValueError(f"{tokens} but {count_noun(len(tags), 'tag')}")
        lines = self.filled(sentence, tags) if sentence.tokens else sentence.raw
        # Tags that were trained from JSON may contain a line end.
        return "".join(line.replace("\n", "\\n") + "\n" for line in lines)

    def cells(self, line: str) -> list[str]:
        """Return the columns of a line."""
        return line.split("\t") if self.tabs else CELL.findall(line)

    def bad_width(self, cells: list[str]) -> str | None:
        """Return the message for a wrong number of columns, or None."""
        separated = "tab-separated " if self.tabs else ""
        expected = count_noun(self.width, f"{separated}column")
        return None if len(cells) == self.width else f"expected {expected}, found {len(cells)}"

    def fill(self, line: str, value: str) -> str:
        """Return the line with this value in the target column."""
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
        columns: tuple[int, int],
        names: list[str],
        note: str,
        tabs: bool = True,
        header: bool = False,
    ) -> Self:
        """Return the layout of a table with these token and tag columns.

        names: names of all columns. note: what the file was read as.
        """
        start, end = columns
        if start == end:
            raise UserError(
                f"{path}: tokens and tags are the same column ({names[start]})", help=CHOOSE
            )
        notes = [note, f"tokens are column {names[start]}, tags are column {names[end]}"]
        if header:
            notes.append(f"first line is a header: {', '.join(names)}")
        return cls(start, end, len(names), tabs, header, notes=tuple(notes))

    @classmethod
    def choose(cls, path: str, lines: list[str], columns: Names, tags: bool, note: str) -> Self:
        """Return the layout of a file with these first lines. tags: require a tag column.

        By default, tokens are in the first column and tags in the last. The user chooses columns
        by 1-based index or, if the layout may have a header, by name.
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
        if header:
            check_distinct(path, 1, names, [name for name in names if name in (source, target)])

        start = _column_index(path, "source", source or "1", width, names)
        # A missing tag column is added, unless tags are required.
        end = (
            _column_index(path, "target", target, width + (not tags), names)
            if target
            else width - 1
        )
        if end == width or (end == start and not (tags or target)):
            notes = (note, f"tokens are column {start + 1}, tags become column {width + 1}")
            return cls(start, None, width, tabs, header, notes=notes)
        labels = names if header else [str(index + 1) for index in range(width)]
        return cls.of_columns(path, (start, end), labels, note, tabs, header)


def _width(path: str, lines: list[str], widths: list[int], tabs: bool, tags: bool) -> int:
    """Return the number of columns: the most frequent if `tags`, else of the first line."""
    if not tags or not widths:
        return widths[0] if widths else 1
    width, found = Counter(widths).most_common(1)[0]
    if width == 1 or (not tabs and found * 2 <= len(widths)):
        number = next(number for number, line in enumerate(lines, 1) if line.strip())
        raise UserError(
            f"{path} line {number}: no tags found: expected a token and its tag per line, or "
            "tokens, a tab and their tags per line"
        )
    return width


def _column_index(path: str, side: str, column: str, width: int, names: list[str]) -> int:
    if column in names:
        return names.index(column)
    if column.isdecimal() and 0 < int(column) <= width:
        return int(column) - 1
    near = difflib.get_close_matches(column, names, n=1)
    raise UserError(
        f"{path}: --{side}-column: no column '{column}': expected a number from 1 to {width}",
        help=f"did you mean '{near[0]}'?" if near else "",
    )


def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a text, separated by the space character only."""
    return tuple(word for word in text.split(" ") if word)
