"""Running text for language models: a file is one document, or many."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Literal

from regard.core.errors import UserError
from regard.data.reading.json_lines import objects_of, refuse_array, text_of
from regard.data.reading.lines import note_blank, read_text, refuse, show_path, split_lines, stem
from regard.data.reading.read import Pair, Pairs
from regard.data.reading.tagged_formats import BETWEEN, CONLLU, Layout, Problems, parse
from regard.data.reading.tagged_layout import conllu_place, is_conllu, is_object

KINDS = {
    ".txt": "text",
    ".jsonl": "JSONL",
    ".json": "JSONL",
    ".conllu": "CoNLL-U",
    ".conll-u": "CoNLL-U",
}
Found = list[tuple[int, str]]  # line, document


def read_documents(
    path: str,
    documents: Literal["file", "blank", "line"] = "file",
    column: str | None = None,
) -> Pairs:
    """The documents of a file (or `-`), each as the target of an empty source.

    Of text the whole file is one, or what is between blank lines, or each line; of JSONL what is
    under the key `text` or `column`; of CoNLL-U each sentence, its words joined by spaces.
    """
    if documents not in ("file", "blank", "line"):
        raise UserError(f"documents: 'file', 'blank' or 'line' expected, {documents!r} found")
    text, notes = read_text(path, "running text is")
    shown = show_path(path)
    kind, how = _kind(path, text)
    notes.insert(0, f"read as {kind}{how}")
    if kind == "text":
        if column:
            raise UserError(f"{shown}: text has no columns; {column!r} can be chosen in JSONL only")
        found = _text_documents(shown, text, documents, notes)
    else:
        if documents != "file":
            each = "object" if kind == "JSONL" else "sentence"
            notes.append(f"each {each} is a document, whatever is asked for text ({documents})")
        read = _json_documents if kind == "JSONL" else _conllu_documents
        found = read(shown, text, column, notes)

    pairs = [Pair("", document, line) for line, document in found if document.strip()]
    if len(pairs) < len(found):
        notes.append(f"empty documents skipped: {len(found) - len(pairs):,}")
    if not pairs:
        raise UserError(f"{shown}: all {len(found):,} documents are empty; text is expected")
    return Pairs(stem(path), shown, pairs, notes)


def _kind(path: str, text: str) -> tuple[str, str]:
    """The format, and how it was found if the name does not say."""
    extension = Path(path.removesuffix(".gz")).suffix.lower()
    if path != "-" and extension in KINDS:
        return KINDS[extension], ""
    first = text[:100_000].split("\n")[:100]
    if is_conllu(first):
        return "CoNLL-U", ", guessed from the first lines"
    if is_object(next((line for line in first if line.strip()), "")):
        return "JSONL", ", guessed from the first lines"
    return "text", ""


def _text_documents(path: str, text: str, documents: str, notes: list[str]) -> Found:
    lines = split_lines(path, text, notes)
    if documents == "line":
        return list(enumerate(lines, 1))
    if documents == "file":
        return [(1, "\n".join(lines) + "\n" * text.endswith("\n"))]
    groups = itertools.groupby(enumerate(lines, 1), key=lambda numbered: bool(numbered[1].strip()))
    paragraphs = [list(group) for full, group in groups if full]
    return [(each[0][0], "\n".join(line for _, line in each)) for each in paragraphs]


def _json_documents(path: str, text: str, column: str | None, notes: list[str]) -> Found:
    key = column or "text"
    refuse_array(path, text)
    lines = split_lines(path, text, notes)
    records, problems = objects_of(lines)
    notes += note_blank(len(lines) - len(records) - len(problems))
    found: Found = []
    for line, record in records:
        try:
            if key not in record:
                keys = ", ".join(record) or "no key"
                raise ValueError(f"key '{key}' expected, {keys} found; name the key of the text")
            found.append((line, text_of(record[key], key)))
        except ValueError as error:
            problems.append((line, str(error)))
    refuse(path, sorted(problems))
    returns = sum("\r\n" in document for _, document in found)
    if returns:
        notes.append(f"Windows line ends (CR LF) made LF within {returns:,} documents")
    return [(line, document.replace("\r\n", "\n")) for line, document in found]


def _conllu_documents(path: str, text: str, column: str | None, notes: list[str]) -> Found:
    place = conllu_place(path, "column", column or "FORM")
    layout = Layout("conllu", source=place, width=len(CONLLU))
    problems: Problems = []
    lines = split_lines(path, text, notes)
    sentences = list(parse(layout, lines, problems, need_tags=False))
    refuse(path, problems)
    if not any(each.tokens for each in sentences):
        raise UserError(f"{path}: no words in {len(lines):,} lines; sentences are expected")
    between = sum(bool(BETWEEN.match(line)) for line in lines)
    if between:
        notes.append(f"multi-word ranges and empty nodes left out: {between:,}")
    return [(each.line, " ".join(each.tokens)) for each in sentences if each.tokens]
