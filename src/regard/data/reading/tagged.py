"""Read sentences with or without tags from CoNLL-U, columns, TSV, JSONL or plain text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from regard.core.errors import UserError
from regard.data.reading.json_lines import is_object
from regard.data.reading.lines import (
    raise_bad_lines,
    read_lines,
    read_text,
    show_path,
    split_lines,
    stem,
)
from regard.data.reading.pair_format import Names, Problems
from regard.data.reading.read import Pair, Pairs
from regard.data.reading.tagged_format import CELL, DOCUMENT, Sentence, TaggedLayout
from regard.data.reading.tagged_lines import JsonLayout, TextLayout, TsvLayout
from regard.data.reading.tagged_tokens import CONLLU, ColumnLayout, ConlluLayout, is_conllu

__all__ = ["Sentence", "TaggedLayout", "read_sentences", "read_tagged"]

MAX_LINES = 200  # maximum number of lines that determine the format
EXPECTED = "sentences with one tag per token"
ONE_TOKEN = (".conll", ".conll2003", ".conll03", ".bio", ".iob", ".iob2", ".bioes", ".col")
BY_SUFFIX: dict[str, type[TaggedLayout]] = {
    suffix: layout for layout in (ConlluLayout, JsonLayout) for suffix in layout.suffixes
}


def read_tagged(
    path: str, source_column: str | None = None, target_column: str | None = None
) -> tuple[Pairs, TaggedLayout]:
    """Return the sentences of a file or stdin (`-`) as pairs of tokens and tags, and the layout.

    A column is a 1-based index, a CoNLL-U name such as UPOS, a header name, or a JSON key.
    """
    text, notes = read_text(path, EXPECTED)
    shown = show_path(path)
    lines = split_lines(shown, text, notes)
    found = _recognize(path, lines, tags=True, ended=True)
    assert found is not None  # all lines were read
    layout = _choose(found, path, lines, (source_column, target_column), tags=True)

    problems: Problems = []
    sentences = [each for each in layout.parse(lines, problems, need_tags=True) if each.tokens]
    raise_bad_lines(shown, problems)
    if not sentences:
        raise UserError(f"{shown}: no sentences in {len(lines):,} lines: expected {EXPECTED}")
    pairs = [Pair(each.tokens, each.tags, each.line) for each in sentences]
    if layout.target is not None and all(set(pair.target) == {layout.no_tag} for pair in pairs):
        words = sum(len(pair.source) for pair in pairs)
        raise UserError(
            f"{shown} line {pairs[0].line}: no tags in column {CONLLU[layout.target]}: it is _ for "
            f"all {words:,} words",
            help="choose another column with --target-column",
        )
    notes = [layout.notes[0], *notes, *layout.notes[1:], *layout.note_skipped(lines)]
    return Pairs(stem(path), shown, pairs, notes), layout


def read_sentences(
    path: str, source_column: str | None = None, target_column: str | None = None
) -> tuple[Iterator[Sentence], TaggedLayout]:
    """Return an iterator over sentences to tag, and the layout to write them in.

    The first lines determine the format: up to 200 of a file, as few as possible of stdin. In
    stdin, a line without tabs is one sentence, unless the user passes a column.
    """
    shown, names = show_path(path), (source_column, target_column)
    lines = read_lines(path)
    first: list[str] = []
    found = None
    at_once = MAX_LINES if path != "-" and Path(path).is_file() else 1
    while found is None:
        more = list(itertools.islice(lines, at_once))
        first += more
        ended = len(more) < at_once or len(first) >= MAX_LINES
        if not more and not any(line.strip() for line in first):
            raise UserError(f"{shown}: the file is empty: expected sentences")
        found = _recognize(path, first, tags=False, ended=ended, named=any(names))
    layout = _choose(found, path, first, names, tags=False)
    return _stream(shown, layout, itertools.chain(first, lines)), layout


def _stream(path: str, layout: TaggedLayout, lines: Iterator[str]) -> Iterator[Sentence]:
    problems: Problems = []
    for sentence in layout.parse(lines, problems, need_tags=False):
        raise_bad_lines(path, problems)
        yield sentence


def _choose(
    found: type[TaggedLayout], path: str, lines: list[str], names: Names, tags: bool
) -> TaggedLayout:
    """Return the layout of a file with these first lines. tags: require a tag column."""
    how = "" if _by_name(path) is found else ", guessed from the first lines"
    return found.choose(show_path(path), lines, names, tags, f"read as {found.name}{how}")


def _by_name(path: str) -> type[TaggedLayout] | None:
    """Return the layout class by the file name suffix, or None."""
    return None if path == "-" else BY_SUFFIX.get(Path(path.removesuffix(".gz")).suffix.lower())


def _recognize(
    path: str, lines: list[str], tags: bool, ended: bool, named: bool = False
) -> type[TaggedLayout] | None:
    """Return the layout class by file name and first lines; None if more lines are needed.

    tags: whether tags are required. ended: whether these are all lines to decide by. named:
    whether the user passed columns. Either tags or named excludes plain text.
    """
    real = [line for line in lines if line.strip()]
    if not real:
        return None
    if known := _by_name(path):
        return known
    if is_conllu(lines):
        return ConlluLayout
    if not ended and all(line.startswith(("#", DOCUMENT)) for line in real):
        return None
    if is_object(real[0]):
        return JsonLayout
    one_token = Path(path.removesuffix(".gz")).suffix.lower() in ONE_TOKEN
    if one_token or real[0].startswith(DOCUMENT):
        return ColumnLayout
    if any("\t" in line for line in real):
        return _tab_kind(lines, ended)
    if tags or named or (path != "-" and _same_width(lines)):
        return ColumnLayout
    return TextLayout


def _tab_kind(lines: list[str], ended: bool) -> type[TaggedLayout] | None:
    """Return the layout of lines with tabs; None if more lines are needed.

    TSV (one sentence per line): two cells of a line contain spaces. Columns (one token per line):
    otherwise, if there are blank lines between sentences. Without blank lines, the layout is TSV
    if a cell contains spaces or if there is a single line, and columns otherwise.
    """
    real = [line.split("\t") for line in lines if line.strip()]
    spaced = [cells for cells in real if any(" " in cell.strip() for cell in cells)]
    if any(sum(" " in cell.strip() or not cell for cell in cells) > 1 for cells in spaced):
        return TsvLayout
    start = next(index for index, line in enumerate(lines) if line.strip())
    if not all(line.strip() for line in lines[start:]):
        return ColumnLayout
    if not ended:
        return None
    return TsvLayout if spaced or len(real) == 1 else ColumnLayout


def _same_width(lines: list[str]) -> bool:
    """Return whether there are blank lines, and all other lines have the same number of words."""
    widths = {len(CELL.findall(line)) for line in lines}
    return 0 in widths and len(widths) == 2 and len(lines) > 3
