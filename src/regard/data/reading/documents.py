"""Read plain text for language models: one document per file, paragraph or line."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from regard.core.errors import UserError
from regard.data.reading.json_lines import check_not_array, is_object, objects_of, text_of
from regard.data.reading.lines import (
    note_blank,
    raise_bad_lines,
    read_text,
    show_path,
    split_lines,
    stem,
)
from regard.data.reading.pair_format import Problems
from regard.data.reading.read import Pair, Pairs
from regard.data.reading.tagged_tokens import CONLLU, ConlluLayout, conllu_column, is_conllu

Documents = list[tuple[int, str]]  # first line and text of each document


def read_documents(
    path: str,
    documents: Literal["file", "paragraph", "line"] = "file",
    column: str | None = None,
) -> Pairs:
    """Return the documents of a file or of stdin (`-`), each as the target of an empty source.

    Plain text: one document per file, paragraph or line. JSONL: the value of the key `text` or
    `column`. CoNLL-U: one document per sentence, its words joined by spaces.
    """
    if documents not in ("file", "paragraph", "line"):
        raise UserError(
            f"document_unit: expected 'file', 'paragraph' or 'line', found {documents!r}"
        )
    text, notes = read_text(path, "plain text")
    shown = show_path(path)
    extension = Path(path.removesuffix(".gz")).suffix.lower()
    first = text[:100_000].split("\n")[:100]
    known = next((one for one in FORMATS if extension in one.suffixes and path != "-"), None)
    format = known or next(one for one in FORMATS if one.fits(first))
    guessed = known is None and format.unit is not None
    notes.insert(0, f"read as {format.name}{', guessed from the first lines' * guessed}")
    if format.unit and documents != "file":
        notes.append(
            f"each {format.unit} is a document; document_unit={documents} is for plain text only"
        )
    found = format.read(shown, text, column, documents, notes)

    pairs = [Pair("", document, line) for line, document in found if document.strip()]
    if len(pairs) < len(found):
        notes.append(f"skipped: {len(found) - len(pairs):,} empty documents")
    if not pairs:
        raise UserError(f"{shown}: all {len(found):,} documents are empty")
    return Pairs(stem(path), shown, pairs, notes)


def _read_text(
    path: str, text: str, column: str | None, documents: str, notes: list[str]
) -> Documents:
    if column:
        raise UserError(f"{path}: plain text has no columns; column {column!r} needs JSONL")
    lines = split_lines(path, text, notes)
    if documents == "line":
        return list(enumerate(lines, 1))
    if documents == "file":
        return [(1, "\n".join(lines) + "\n" * text.endswith("\n"))]
    groups = itertools.groupby(enumerate(lines, 1), key=lambda numbered: bool(numbered[1].strip()))
    paragraphs = [list(group) for full, group in groups if full]
    return [(each[0][0], "\n".join(line for _, line in each)) for each in paragraphs]


def _read_json(
    path: str, text: str, column: str | None, documents: str, notes: list[str]
) -> Documents:
    key = column or "text"
    check_not_array(path, text)
    lines = split_lines(path, text, notes)
    records, problems = objects_of(lines)
    notes += note_blank(len(lines) - len(records) - len(problems))
    found: Documents = []
    for line, record in records:
        try:
            if key not in record:
                keys = ", ".join(record) or "no keys"
                raise ValueError(f"expected key '{key}', found {keys}")
            found.append((line, text_of(record[key], key)))
        except ValueError as error:
            problems.append((line, str(error)))
    raise_bad_lines(path, sorted(problems))
    returns = sum("\r\n" in document for _, document in found)
    if returns:
        notes.append(f"Windows line ends (CR LF) converted to LF in {returns:,} documents")
    return [(line, document.replace("\r\n", "\n")) for line, document in found]


def _read_conllu(
    path: str, text: str, column: str | None, documents: str, notes: list[str]
) -> Documents:
    column_index = conllu_column(path, "column", column or "FORM")
    layout = ConlluLayout(source=column_index, width=len(CONLLU))
    problems: Problems = []
    lines = split_lines(path, text, notes)
    sentences = [each for each in layout.parse(lines, problems, need_tags=False) if each.tokens]
    raise_bad_lines(path, problems)
    if not sentences:
        raise UserError(f"{path}: no sentences in {len(lines):,} lines")
    notes += layout.note_skipped(lines)
    return [(each.line, " ".join(each.tokens)) for each in sentences]


class DocumentFormat(NamedTuple):
    """A file format of documents.

    name: shown in messages. suffixes: file name suffixes of the format. unit: what a document is
    (object, sentence); None if the user chooses. fits: returns whether the first lines have this
    format. read: returns the documents of a text.
    """

    name: str
    suffixes: tuple[str, ...]
    unit: str | None
    fits: Callable[[list[str]], bool]
    read: Callable[[str, str, str | None, str, list[str]], Documents]


def _is_json(lines: list[str]) -> bool:
    return is_object(next((line for line in lines if line.strip()), ""))


FORMATS = (
    DocumentFormat("CoNLL-U", (".conllu", ".conll-u"), "sentence", is_conllu, _read_conllu),
    DocumentFormat("JSONL", (".jsonl", ".json"), "object", _is_json, _read_json),
    DocumentFormat("text", (".txt",), None, lambda lines: True, _read_text),
)
