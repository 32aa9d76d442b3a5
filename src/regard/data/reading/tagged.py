"""Tagged sentences from CoNLL-U, one token a line, TSV or JSONL; to train on, or to be tagged."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from regard.core.errors import UserError
from regard.data.reading.lines import read_lines, read_text, refuse, show_path, split_lines, stem
from regard.data.reading.read import Pair, Pairs
from regard.data.reading.tagged_formats import (
    BETWEEN,
    CONLLU,
    DOCUMENT,
    Layout,
    Problems,
    Sentence,
    parse,
)
from regard.data.reading.tagged_layout import choose_layout, recognise

__all__ = ["Layout", "Sentence", "read_sentences", "read_tagged"]

LOOK = 200  # lines to decide by
EXPECTED = "sentences with a tag for each token are"


def read_tagged(
    path: str, source_column: str | None = None, target_column: str | None = None
) -> tuple[Pairs, Layout]:
    """The sentences of a file (or `-`), tokens as source and tags as target, and its layout.

    A column is a number from 1, a CoNLL-U name such as UPOS, a name in a header, or a JSON key.
    """
    text, notes = read_text(path, EXPECTED)
    shown = show_path(path)
    lines = split_lines(shown, text, notes)
    kind = recognise(path, lines, tags=True, ended=True)
    assert kind is not None  # all lines were seen
    layout = choose_layout(path, kind, lines, source_column, target_column, tags=True)

    problems: Problems = []
    sentences = list(parse(layout, lines, problems, need_tags=True))
    refuse(shown, problems)
    pairs = [Pair(each.tokens, each.tags, each.line) for each in sentences if each.tokens]
    if not pairs:
        raise UserError(f"{shown}: no sentence in {len(lines):,} lines; {EXPECTED} expected")
    _refuse_untagged(shown, layout, pairs)
    notes = [layout.notes[0], *notes, *layout.notes[1:], *_left_out(layout, lines)]
    return Pairs(stem(path), shown, pairs, notes), layout


def read_sentences(
    path: str, source_column: str | None = None, target_column: str | None = None
) -> tuple[Iterator[Sentence], Layout]:
    """The sentences to be tagged, each as soon as it is there, and the layout to render them in.

    The first lines decide: of a file up to 200, of a stream no more than are needed. Lines without
    tabs in a stream are one sentence each, unless columns are named.
    """
    shown = show_path(path)
    lines = read_lines(path)
    seen: list[str] = []
    kind = None
    at_once = LOOK if path != "-" and Path(path).is_file() else 1
    while kind is None:
        more = list(itertools.islice(lines, at_once))
        seen += more
        ended = len(more) < at_once or len(seen) >= LOOK
        if not more and not any(line.strip() for line in seen):
            raise UserError(f"{shown}: the file is empty; sentences are expected")
        kind = recognise(path, seen, tags=False, ended=ended)
    if kind == "text" and (source_column or target_column):
        kind = "columns"
    layout = choose_layout(path, kind, seen, source_column, target_column, tags=False)
    return _stream(shown, layout, itertools.chain(seen, lines)), layout


def _stream(path: str, layout: Layout, lines: Iterator[str]) -> Iterator[Sentence]:
    problems: Problems = []
    for sentence in parse(layout, lines, problems, need_tags=False):
        refuse(path, problems)
        yield sentence


def _refuse_untagged(path: str, layout: Layout, pairs: list[Pair]) -> None:
    """An empty column of CoNLL-U has `_` in all its words."""
    if layout.kind != "conllu" or any(set(pair.target) != {"_"} for pair in pairs):
        return
    assert layout.target is not None  # CoNLL-U has all its columns
    words = sum(len(pair.source) for pair in pairs)
    raise UserError(
        f"{path} line {pairs[0].line}: the column {CONLLU[layout.target]} is _ here and in all "
        f"{words:,} words, so it has no tags; name another one with --target-column"
    )


def _left_out(layout: Layout, lines: list[str]) -> list[str]:
    """Notes on the lines that are no part of any sentence."""
    if layout.kind == "conllu":
        between = sum(bool(BETWEEN.match(line)) for line in lines)
        return [f"multi-word ranges and empty nodes left out: {between:,}"] if between else []
    if layout.kind == "columns":
        marks = sum(line.startswith(DOCUMENT) for line in lines)
        return [f"{DOCUMENT} lines skipped: {marks:,}"] if marks else []
    blank = sum(not line.strip() for line in lines)
    return [f"blank lines skipped: {blank:,}"] if blank else []
