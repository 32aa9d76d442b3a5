"""Tagged sentences, one a line: tokens and tags in TSV, JSON objects, or bare text."""

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
    """One sentence a line."""

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
                    problems.append((number, f"{problem}; one tag for each token is expected"))
            yield Sentence(tokens, tags or None, number, (line,))

    @abstractmethod
    def read(self, line: str, need_tags: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The tokens of a line, and the tags if there are any; a ValueError says what is wrong."""

    def note_skipped(self, lines: list[str]) -> list[str]:
        return note_blank(sum(not line.strip() for line in lines))


class TextLayout(LineLayout):
    """Words between spaces, to be tagged."""

    kind = "text"
    name = "text, one sentence a line"

    @classmethod
    def choose(cls, path: str, lines: list[str], columns: Names, tags: bool, note: str) -> Self:
        return cls(tabs=False, notes=(note,))

    def read(self, line: str, need_tags: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return split_words(line.replace("\t", " ")), ()

    def filled(self, sentence: Sentence, tags: Sequence[str]) -> Iterable[str]:
        return [" ".join(tags)]


class TsvLayout(LineLayout):
    """Tokens and tags between spaces, in cells between tabs."""

    kind = "tsv"
    name = "TSV, one sentence a line"
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
    """Objects with a list of tokens and a list of tags."""

    kind = "jsonl"
    name = "JSONL"
    suffixes = (".jsonl", ".json")

    @classmethod
    def choose(cls, path: str, lines: list[str], columns: Names, tags: bool, note: str) -> Self:
        first = next(line for line in lines if line.strip())
        try:
            known = parse_object(first)
        except ValueError:
            known = {}  # the line will be refused when it is read
        keys = [
            given or next((name for name in usual if name in known), usual[0])
            for given, usual in zip(columns, (TOKENS, TAGS), strict=True)
        ]
        said = (note, f"tokens are under the key {keys[0]}, tags under {keys[1]}")
        return cls(keys=(keys[0], keys[1]), notes=said)

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
    """The strings of a list, or the words of one string."""
    if isinstance(value, str):
        return split_words(text_of(value, key))
    if not isinstance(value, list):
        raise ValueError(f"'{key}' must be a list of strings, {name_of(value)} found")
    strings = tuple(text_of(part, key) for part in value)
    if not all(string.strip() for string in strings):
        raise ValueError(f"'{key}' holds an empty string")
    return strings
