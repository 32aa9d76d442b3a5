"""Layouts with one token per line: CoNLL-U, and tab- or space-separated columns."""

from __future__ import annotations

import difflib
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from typing_extensions import Self

from regard.core.errors import UserError
from regard.data.reading.pair_format import Names, Problems
from regard.data.reading.tagged_format import DOCUMENT, Sentence, TaggedLayout

CONLLU = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
WORD = re.compile(r"\d+\t")  # not a multi-word range such as 3-4, nor an empty node such as 5.1
BETWEEN = re.compile(r"\d+[-.]\d+\t")


class TokenLayout(TaggedLayout):
    """Base class of layouts with one token per line; a blank line ends a sentence."""

    @abstractmethod
    def is_word(self, line: str) -> bool:
        """Return whether a line must have a token, unlike blank lines and comments."""

    def parse(
        self, lines: Iterable[str], problems: Problems, need_tags: bool
    ) -> Iterator[Sentence]:
        """Yield one sentence per group of lines that ends with a blank line.

        Lines after the last blank line are the last sentence.
        """
        start, raw, words = 1, list[str](), False
        for number, line in enumerate(lines, 1):
            raw.append(line)
            words = words or self.is_word(line)
            if words and not line.strip():
                yield self._sentence(start, raw, problems, need_tags)
                start, raw, words = number + 1, [], False
        if raw:
            yield self._sentence(start, raw, problems, need_tags)

    def _sentence(
        self, start: int, raw: list[str], problems: Problems, need_tags: bool
    ) -> Sentence:
        tokens: list[str] = []
        tags: list[str] = []
        first = start
        for number, line in enumerate(raw, start):
            if not self.is_word(line):
                continue
            first = number if not tokens else first
            cells = self.cells(line)
            if problem := self.bad_cells(line, cells, need_tags):
                problems.append((number, problem))
                continue
            tokens.append(cells[self.source])
            if self.target is not None:
                tags.append(cells[self.target])
        unknown = not all(tags) or set(tags) == {self.no_tag}
        has_tags = bool(tags) and (need_tags or not unknown)
        return Sentence(tuple(tokens), tuple(tags) if has_tags else None, first, tuple(raw))

    def bad_cells(self, line: str, cells: list[str], need_tags: bool) -> str | None:
        """Return the message for wrong columns of a line, or None."""
        if problem := self.bad_width(cells):
            return problem
        if not cells[self.source].strip():
            return f"empty token (column {self.source + 1})"
        if need_tags and self.target is not None and not cells[self.target].strip():
            return f"empty tag (column {self.target + 1}): expected one tag per token"
        return None

    def filled(self, sentence: Sentence, tags: Sequence[str]) -> list[str]:
        left = iter(tags)
        return [
            self.fill(line, next(left)) if self.is_word(line) else line for line in sentence.raw
        ]


class ColumnLayout(TokenLayout):
    """Columns as in CoNLL 2003: by default, the first is the token and the last is the tag."""

    kind = "columns"
    name = "columns, one token per line"

    def is_word(self, line: str) -> bool:
        return bool(line.strip()) and not line.startswith(DOCUMENT)

    def note_skipped(self, lines: list[str]) -> list[str]:
        marks = sum(line.startswith(DOCUMENT) for line in lines)
        return [f"skipped: {marks:,} {DOCUMENT} lines"] if marks else []


class ConlluLayout(TokenLayout):
    """The ten columns of CoNLL-U."""

    kind = "conllu"
    name = "CoNLL-U"
    suffixes = (".conllu", ".conll-u")
    no_tag = "_"

    @classmethod
    def choose(cls, path: str, lines: list[str], columns: Names, tags: bool, note: str) -> Self:
        start = conllu_column(path, "--source-column", columns[0] or "FORM")
        end = conllu_column(path, "--target-column", columns[1] or "UPOS")
        return cls.of_columns(path, (start, end), list(CONLLU), note)

    def is_word(self, line: str) -> bool:
        return bool(line.strip()) and not (line.startswith("#") or BETWEEN.match(line))

    def bad_cells(self, line: str, cells: list[str], need_tags: bool) -> str | None:
        if len(cells) == self.width and not WORD.match(line):
            return f"column ID: expected a number such as 3, 3-4 or 5.1, found {cells[0]!r}"
        return super().bad_cells(line, cells, need_tags)

    def filled(self, sentence: Sentence, tags: Sequence[str]) -> list[str]:
        lines = super().filled(sentence, tags)
        return [*lines, ""] if lines[-1].strip() else lines

    def note_skipped(self, lines: list[str]) -> list[str]:
        between = sum(bool(BETWEEN.match(line)) for line in lines)
        return [f"skipped: {between:,} multi-word ranges and empty nodes"] if between else []


def is_conllu(lines: list[str]) -> bool:
    """Return whether the first line that is neither blank nor a comment is a CoNLL-U token."""
    words = (line for line in lines if line.strip() and not line.startswith("#"))
    first = next(words, "")
    return first.count("\t") == len(CONLLU) - 1 and bool(WORD.match(first) or BETWEEN.match(first))


def conllu_column(path: str, option: str, column: str) -> int:
    """Return the 0-based index of a CoNLL-U column, given by 1-based index or name."""
    if column.isdecimal() and 0 < int(column) <= len(CONLLU):
        return int(column) - 1
    if column.upper() in CONLLU:
        return CONLLU.index(column.upper())
    near = difflib.get_close_matches(column.upper(), CONLLU, n=1, cutoff=0.5)
    raise UserError(
        f"{path}: {option}: no column '{column}' in CoNLL-U: expected a number from 1 to 10 or one "
        f"of {', '.join(CONLLU)}",
        help=f"did you mean {near[0]}?" if near else "",
    )
