"""The forms of tagged sentences: from lines to tokens and tags, and back with other tags."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from regard.data.reading.json_lines import name_of, parse_object, pick, text_of

CONLLU = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
NAMES = {
    "conllu": "CoNLL-U",
    "columns": "columns, one token a line",
    "tsv": "TSV, one sentence a line",
    "text": "text, one sentence a line",
    "jsonl": "JSONL",
}
DOCUMENT = "-DOCSTART-"
WORD = re.compile(r"\d+\t")  # not a multi-word range such as 3-4, nor an empty node such as 5.1
BETWEEN = re.compile(r"\d+[-.]\d+\t")
CELL = re.compile(r"[^ ]+")

Kind = Literal["conllu", "columns", "tsv", "text", "jsonl"]
Problems = list[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: its tokens, its tags if it has any, and its lines as they stand in the file.

    One without tokens only passes lines on: a header, comments, blank lines.
    """

    tokens: tuple[str, ...]
    tags: tuple[str, ...] | None
    line: int  # of the first token, from 1
    raw: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file writes its sentences; columns are counted from 0."""

    kind: Kind
    source: int = 0
    target: int | None = None  # None: no tags yet, they become a new last column
    width: int = 1  # columns of each line
    tabs: bool = True  # between columns, else spaces
    header: bool = False
    keys: tuple[str, str] = ("tokens", "tags")  # of JSON objects
    notes: tuple[str, ...] = ()  # on what was recognised

    def render(self, sentence: Sentence, tags: Sequence[str]) -> str:
        """The sentence in its own format with these tags, line ends and all."""
        if len(tags) != len(sentence.tokens):
            tokens = count(len(sentence.tokens), "token")
            raise ValueError(f"{tokens} but {count(len(tags), 'tag')}")
        if not sentence.tokens:
            lines = list(sentence.raw)
        elif self.kind == "text":
            lines = [" ".join(tags)]
        elif self.kind == "tsv":
            lines = [self._fill(sentence.raw[0], " ".join(tags))]
        elif self.kind == "jsonl":
            record = parse_object(sentence.raw[0]) | {self.keys[1]: list(tags)}
            lines = [json.dumps(record, ensure_ascii=False)]
        else:
            left = iter(tags)
            lines = [
                self._fill(line, next(left)) if self.is_word(line) else line
                for line in sentence.raw
            ]
            if self.kind == "conllu" and lines[-1].strip():
                lines.append("")
        return "".join(line + "\n" for line in lines)

    def is_word(self, line: str) -> bool:
        """Whether a line of a file with one token a line holds a token, or should."""
        if not line.strip():
            return False
        if self.kind == "conllu":
            return not (line.startswith("#") or BETWEEN.match(line))
        return not line.startswith(DOCUMENT)

    def cells(self, line: str) -> list[str]:
        """The columns of a line."""
        return line.split("\t") if self.tabs else CELL.findall(line)

    def _fill(self, line: str, value: str) -> str:
        """The line with this value in the target column; all else stays as it is."""
        if self.target is None:
            return line + ("\t" if self.tabs else " ") + value
        if self.tabs:
            cells = line.split("\t")
            cells[self.target] = value
            return "\t".join(cells)
        start, end = list(CELL.finditer(line))[self.target].span()
        return line[:start] + value + line[end:]


def parse(
    layout: Layout, lines: Iterable[str], problems: Problems, need_tags: bool
) -> Iterator[Sentence]:
    """The sentences of a file, each as soon as its last line is there; bad lines go to `problems`.

    With `need_tags` a token without a tag is a bad line, else the sentence has no tags.
    """
    if layout.kind in ("conllu", "columns"):
        for start, raw in _blocks(lines, layout.is_word):
            yield _block(layout, start, raw, problems, need_tags)
        return
    sentence = _json_sentence if layout.kind == "jsonl" else _line_sentence
    for number, line in enumerate(lines, 1):
        if not line.strip() or (number == 1 and layout.header):
            yield Sentence((), None, number, (line,))
        else:
            yield sentence(layout, number, line, problems, need_tags)


def _blocks(
    lines: Iterable[str], is_word: Callable[[str], bool]
) -> Iterator[tuple[int, list[str]]]:
    """Groups of lines with one sentence each, up to its blank line; what is left comes last."""
    start, raw, words = 1, list[str](), False
    for number, line in enumerate(lines, 1):
        raw.append(line)
        words = words or is_word(line)
        if words and not line.strip():
            yield start, raw
            start, raw, words = number + 1, [], False
    if raw:
        yield start, raw


def _block(
    layout: Layout, start: int, raw: list[str], problems: Problems, need_tags: bool
) -> Sentence:
    tokens: list[str] = []
    tags: list[str] = []
    first = start
    for number, line in enumerate(raw, start):
        if not layout.is_word(line):
            continue
        first = number if not tokens else first
        cells = layout.cells(line)
        if problem := _bad_cells(layout, line, cells, need_tags):
            problems.append((number, problem))
            continue
        tokens.append(cells[layout.source])
        if layout.target is not None:
            tags.append(cells[layout.target])
    # An untagged CoNLL-U file has `_` for each tag.
    unknown = not all(tags) or (layout.kind == "conllu" and set(tags) == {"_"})
    there = bool(tags) and (need_tags or not unknown)
    return Sentence(tuple(tokens), tuple(tags) if there else None, first, tuple(raw))


def _bad_cells(layout: Layout, line: str, cells: list[str], need_tags: bool) -> str | None:
    """What is wrong with the columns of a line, if anything."""
    if len(cells) != layout.width:
        between = " between tabs" if layout.tabs else ""
        return f"{count(layout.width, 'column')}{between} expected, {len(cells)} found"
    if layout.kind == "conllu" and not WORD.match(line):
        return f"a number such as 3, 3-4 or 5.1 expected in the column ID, {cells[0]!r} found"
    if not cells[layout.source].strip():
        return f"the token is empty (column {layout.source + 1})"
    if need_tags and layout.target is not None and not cells[layout.target].strip():
        return f"the tag is empty (column {layout.target + 1}); a tag for each token is expected"
    return None


def _line_sentence(
    layout: Layout, number: int, line: str, problems: Problems, need_tags: bool
) -> Sentence:
    """The sentence of a line of text, or of a table with tokens and tags between spaces."""
    if layout.kind == "text":
        return Sentence(split_words(line.replace("\t", " ")), None, number, (line,))
    cells = line.split("\t")
    if len(cells) != layout.width:
        problem = f"{count(layout.width, 'column')} between tabs expected, {len(cells)} found"
        problems.append((number, problem))
        return Sentence((), None, number, (line,))
    tokens = split_words(cells[layout.source])
    tags = split_words(cells[layout.target]) if layout.target is not None else ()
    return _checked(tokens, tags, number, line, problems, need_tags)


def _json_sentence(
    layout: Layout, number: int, line: str, problems: Problems, need_tags: bool
) -> Sentence:
    source, target = layout.keys
    try:
        record = parse_object(line)
        tokens = _strings(pick(record, (source,))[0], source)
        if not need_tags and record.get(target) is None:
            return _checked(tokens, (), number, line, problems, need_tags)
        tags = _strings(pick(record, (target,))[0], target)
    except ValueError as error:
        problems.append((number, str(error)))
        return Sentence((), None, number, (line,))
    return _checked(tokens, tags, number, line, problems, need_tags)


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


def _checked(
    tokens: tuple[str, ...],
    tags: tuple[str, ...],
    number: int,
    line: str,
    problems: Problems,
    need_tags: bool,
) -> Sentence:
    """The sentence of a line; that it has one tag for each token is seen to."""
    if len(tokens) != len(tags) and (tags or need_tags):
        problem = f"{count(len(tokens), 'token')} but {count(len(tags), 'tag')}"
        problems.append((number, f"{problem}; one tag for each token is expected"))
    return Sentence(tokens, tags or None, number, (line,))


def split_words(text: str) -> tuple[str, ...]:
    """The words between spaces; only the space itself separates."""
    return tuple(word for word in text.split(" ") if word)


def count(number: int, noun: str) -> str:
    """'1 tag', '2 tags'."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
