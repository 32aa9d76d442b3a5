"""Layouts with one sentence per line: TSV, JSON objects, or plain text."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from typing_extensions import Self

from regard.core.formatting import count_noun
from regard.data.reading.json_lines import name_of, parse_object, pick, text_of
from regard.data.reading.lines import note_blank
from regard.data.reading.pair_format import Names, Problems
from regard.data.reading.tagged_format import (
    TAGS,
    TOKENS,
    Sentence,
    TaggedLayout,
    split_words,
)


class LineLayout(TaggedLayout):
    """Base class of layouts with one sentence per line."""

    def parse(
        self, lines: Iterable[str], problems: Problems, need_tags: bool
    ) -> Iterator[Sentence]:
        for number, line in enumerate(lines, 1):
            if not line.strip() or (number == 1 and self.header):
                yield Sentence((), None, number, (line,))
                continue
            try:
                tokens, tags = self.read(line, need_tags)
            except ValueError as error:
                problems.append((number, str(error)))
                tokens, tags = (), ()
            else:
                if len(tokens) != len(tags) and (tags or need_tags):
                    problem = (
                        f"{count_noun(len(tokens), 'token')} but {count_noun(len(tags), 'tag')}"
                    )
                    problems.append((number, f"{problem}: expected one tag per token"))
            yield Sentence(tokens, tags or None, number, (line,))

    @abstractmethod
    def read(self, line: str, need_tags: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the tokens and the tags of a line; raise ValueError if the line is invalid."""

    def note_skipped(self, lines: list[str]) -> list[str]:
        return note_blank(sum(not line.strip() for line in lines))


class TextLayout(LineLayout):
    """Plain text: whitespace-separated words without tags."""

    kind = "text"
    name = "text, one sentence per line"

    @classmethod
    def choose(cls, path: str, lines: list[str], columns: Names, tags: bool, note: str) -> Self:
        return cls(tabs=False, notes=(note,))

    def read(self, line: str, need_tags: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return split_words(line.replace("\t", " ")), ()

    def filled(self, sentence: Sentence, tags: Sequence[str]) -> Iterable[str]:
        return [" ".join(tags)]


class TsvLayout(LineLayout):
    """TSV: one cell with all tokens, one with all tags, each separated by spaces."""

    kind = "tsv"
    name = "TSV, one sentence per line"
    may_be_named = True

    def read(self, line: str, need_tags: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
        cells = line.split("\t")
        if problem := self.bad_width(cells):
            raise ValueError(problem)
        tags = split_words(cells[self.target]) if self.target is not None else ()
        return split_words(cells[self.source]), tags

    def filled(self, sentence: Sentence, tags: Sequence[str]) -> Iterable[str]:
        return [self.fill(sentence.raw[0], " ".join(tags))]


class JsonLayout(LineLayout):
    """JSON lines: objects with a list of tokens and a list of tags."""

    kind = "jsonl"
    name = "JSONL"
    suffixes = (".jsonl", ".json")

    @classmethod
    def choose(cls, path: str, lines: list[str], columns: Names, tags: bool, note: str) -> Self:
        first = next(line for line in lines if line.strip())
        try:
            known = parse_object(first)
        except ValueError:
            known = {}  # `read` will report this line
        keys = [
            column or next((name for name in names if name in known), names[0])
            for column, names in zip(columns, (TOKENS, TAGS), strict=True)
        ]
        notes = (note, f"tokens are under the key {keys[0]}, tags under {keys[1]}")
        return cls(keys=(keys[0], keys[1]), notes=notes)

    def read(self, line: str, need_tags: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
        source, target = self.keys
        record = parse_object(line)
        tokens = _strings(pick(record, (source,))[0], source)
        if not need_tags and record.get(target) is None:
            return tokens, ()
        return tokens, _strings(pick(record, (target,))[0], target)

    def filled(self, sentence: Sentence, tags: Sequence[str]) -> Iterable[str]:
        record = parse_object(sentence.raw[0]) | {self.keys[1]: list(tags)}
        return [json.dumps(record, ensure_ascii=False)]


def _strings(value: Any, key: str) -> tuple[str, ...]:
    """Return the strings of a JSON list, or the words of a string; raise ValueError otherwise."""
    if isinstance(value, str):
        return split_words(text_of(value, key))
    if not isinstance(value, list):
        raise ValueError(f"'{key}': expected a list of strings, found {name_of(value)}")
    strings = tuple(text_of(part, key) for part in value)
    if not all(string.strip() for string in strings):
        raise ValueError(f"'{key}': empty string")
    return strings
