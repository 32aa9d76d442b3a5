"""Tagged sentences from CoNLL-U, one token a line, TSV or JSONL; to train on, or to be tagged."""

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

LOOK = 200  # lines to decide by
EXPECTED = "sentences with a tag for each token are"
ONE_TOKEN = (".conll", ".conll2003", ".conll03", ".bio", ".iob", ".iob2", ".bioes", ".col")
BY_SUFFIX: dict[str, type[TaggedLayout]] = {
    suffix: layout for layout in (ConlluLayout, JsonLayout) for suffix in layout.suffixes
}


def read_tagged(
    path: str, source_column: str | None = None, target_column: str | None = None
) -> tuple[Pairs, TaggedLayout]:
    """The sentences of a file (or `-`), tokens as source and tags as target, and its layout.

    A column is a number from 1, a CoNLL-U name such as UPOS, a name in a header, or a JSON key.
    """
    text, notes = read_text(path, EXPECTED)
    shown = show_path(path)
    lines = split_lines(shown, text, notes)
    found = _recognize(path, lines, tags=True, ended=True)
    assert found is not None  # all lines were seen
    layout = _choose(found, path, lines, (source_column, target_column), tags=True)

    problems: Problems = []
    sentences = [each for each in layout.parse(lines, problems, need_tags=True) if each.tokens]
    raise_bad_lines(shown, problems)
    if not sentences:
        raise UserError(f"{shown}: no sentence in {len(lines):,} lines; {EXPECTED} expected")
    pairs = [Pair(each.tokens, each.tags, each.line) for each in sentences]
    if layout.target is not None and all(set(pair.target) == {layout.no_tag} for pair in pairs):
        words = sum(len(pair.source) for pair in pairs)
        raise UserError(
            f"{shown} line {pairs[0].line}: the column {CONLLU[layout.target]} is _ here and in "
            f"all {words:,} words, so it has no tags; name another one with --target-column"
        )
    notes = [layout.notes[0], *notes, *layout.notes[1:], *layout.note_skipped(lines)]
    return Pairs(stem(path), shown, pairs, notes), layout


def read_sentences(
    path: str, source_column: str | None = None, target_column: str | None = None
) -> tuple[Iterator[Sentence], TaggedLayout]:
    """The sentences to be tagged, each as soon as it is there, and the layout to render them in.

    The first lines decide: of a file up to 200, of a stream no more than are needed. Lines without
    tabs in a stream are one sentence each, unless columns are named.
    """
    shown, names = show_path(path), (source_column, target_column)
    lines = read_lines(path)
    seen: list[str] = []
    found = None
    at_once = LOOK if path != "-" and Path(path).is_file() else 1
    while found is None:
        more = list(itertools.islice(lines, at_once))
        seen += more
        ended = len(more) < at_once or len(seen) >= LOOK
        if not more and not any(line.strip() for line in seen):
            raise UserError(f"{shown}: the file is empty; sentences are expected")
        found = _recognize(path, seen, tags=False, ended=ended, named=any(names))
    layout = _choose(found, path, seen, names, tags=False)
    return _stream(shown, layout, itertools.chain(seen, lines)), layout


def _stream(path: str, layout: TaggedLayout, lines: Iterator[str]) -> Iterator[Sentence]:
    problems: Problems = []
    for sentence in layout.parse(lines, problems, need_tags=False):
        raise_bad_lines(path, problems)
        yield sentence


def _choose(
    found: type[TaggedLayout], path: str, lines: list[str], names: Names, tags: bool
) -> TaggedLayout:
    """The layout of a file with these first lines; with `tags` it must have a column of tags."""
    how = "" if _by_name(path) is found else ", guessed from the first lines"
    return found.choose(show_path(path), lines, names, tags, f"read as {found.name}{how}")


def _by_name(path: str) -> type[TaggedLayout] | None:
    """The format that the name of a file tells."""
    return None if path == "-" else BY_SUFFIX.get(Path(path.removesuffix(".gz")).suffix.lower())


def _recognize(
    path: str, lines: list[str], tags: bool, ended: bool, named: bool = False
) -> type[TaggedLayout] | None:
    """The format by the name and the lines; None if more lines are needed to tell.

    named: whether columns were named, so that it is no bare text.
    """
    real = [line for line in lines if line.strip()]
    if not real:
        return None
    if said := _by_name(path):
        return said
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
    """TSV if spaces part the words within two cells; with blank lines else one token a line.

    Without either a single line is a sentence, several are the tokens of one sentence, or TSV if
    a cell has spaces.
    """
    real = [line.split("\t") for line in lines if line.strip()]
    spaced = [cells for cells in real if any(" " in cell.strip() for cell in cells)]
    if any(sum(" " in cell.strip() or not cell for cell in cells) > 1 for cells in spaced):
        return TsvLayout
    start = next(place for place, line in enumerate(lines) if line.strip())
    if not all(line.strip() for line in lines[start:]):
        return ColumnLayout
    if not ended:
        return None
    return TsvLayout if spaced or len(real) == 1 else ColumnLayout


def _same_width(lines: list[str]) -> bool:
    """Whether blank lines part the lines, and all others have the same number of words."""
    widths = {len(CELL.findall(line)) for line in lines}
    return 0 in widths and len(widths) == 2 and len(lines) > 3
