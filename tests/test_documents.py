"""Plain text: what is one document in each format, and that nothing is lost silently."""

import gzip
import io
import sys
from pathlib import Path
from typing import Literal

import pytest

from regard.core.errors import UserError
from regard.data.reading.documents import read_documents
from regard.data.reading.read import Pair

TEXT = "One.\nTwo.\n\n\n  \nThree.\n"
CONLLU = (
    "# text = Go!\n1-2\tGo!\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tGo\tgo\tVERB\t_\t_\t_\t_\t_\t_\n2\t!\t!\tPUNCT\t_\t_\t_\t_\t_\t_\n\n"
    "1\tNo\tno\tINTJ\t_\t_\t_\t_\t_\t_\n\n\n"
)


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    Path(name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return name


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a", "a.md"])
@pytest.mark.parametrize(
    ("documents", "found"),
    [
        ("file", [(1, TEXT)]),
        ("paragraph", [(1, "One.\nTwo."), (6, "Three.")]),
        ("line", [(1, "One."), (2, "Two."), (6, "Three.")]),
    ],
)
def test_text(
    name: str, documents: Literal["file", "paragraph", "line"], found: list[tuple[int, str]]
) -> None:
    for content in (TEXT, TEXT.replace("\n", "\r\n")):
        read = read_documents(write(name, content), documents)
        assert read.pairs == [Pair("", text, line) for line, text in found]
        assert (read.name, read.notes[0]) == ("a", "read as text")
        returns = "Windows line ends (CR LF) removed from 6 lines"
        assert (returns in read.notes) == ("\r" in content)
        assert ("skipped: 3 empty documents" in read.notes) == (documents == "line")


def test_a_file_without_a_last_line_end_gets_none() -> None:
    assert read_documents(write("a.txt", "a\nb")).pairs == [Pair("", "a\nb", 1)]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json.gz", "a.data"])
def test_json(name: str) -> None:
    content = '{"text": "a\\r\\nb", "body": "x"}\n{"text": " ", "body": "y"}\n\n'
    read = read_documents(write(name, content))
    assert read.pairs == [Pair("", "a\nb", 1)]
    assert read.notes[0].startswith("read as JSONL")
    assert ("guessed" in read.notes[0]) == (name == "a.data")
    assert "skipped: 1 empty documents" in read.notes
    assert "Windows line ends (CR LF) converted to LF in 1 documents" in read.notes
    read = read_documents(name, "line", "body")
    assert read.pairs == [Pair("", "x", 1), Pair("", "y", 2)]
    assert "each object is a document; document_unit=line is for plain text only" in read.notes


@pytest.mark.parametrize("name", ["a.conllu", "a.conll-u.gz", "a.data"])
def test_conllu(name: str) -> None:
    read = read_documents(write(name, CONLLU))
    assert read.pairs == [Pair("", "Go !", 3), Pair("", "No", 6)]
    assert read.notes[0].startswith("read as CoNLL-U")
    assert read.notes[1:] == ["skipped: 1 multi-word ranges and empty nodes"]
    assert read_documents(name, column="lemma").pairs[0].target == "go !"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (b"a\nb\n", gzip.compress(b"a\nb\n")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert read_documents("-").pairs == [Pair("", "a\nb\n", 1)]


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.txt", "", None, "a.txt: the file is empty: expected plain text"),
        ("a.txt", " \n\n", None, "a.txt: the file is empty"),
        ("a.txt", "a\n", "text", "a.txt: plain text has no columns; column 'text' needs JSONL"),
        ("a.txt", b"a\nb\xe9\n", None, "a.txt line 2: not UTF-8: byte 0xE9"),
        ("a.jsonl", '{"text": ""}\n', None, "a.jsonl: all 1 documents are empty"),
        (
            "a.jsonl",
            '{"text": "a"}\n{"b": 1}',
            None,
            "a.jsonl line 2: expected key 'text', found b",
        ),
        (
            "a.jsonl",
            '{"text": 1}\n',
            None,
            "a.jsonl line 1: 'text': expected a string, found a number",
        ),
        ("a.jsonl", '{"text"\n', None, "a.jsonl line 1: invalid JSON"),
        ("a.conllu", "1\ta\n", None, "a.conllu line 1: expected 10 tab-separated columns, found 2"),
        ("a.conllu", CONLLU, "lema", "no column 'lema' in CoNLL-U"),
        ("a.conllu", "# c\n", None, "a.conllu: no sentences in 1 lines"),
    ],
)
def test_misuse(name: str, content: str | bytes, column: str | None, message: str) -> None:
    with pytest.raises(UserError) as error:
        read_documents(write(name, content), column=column)
    assert message in str(error.value)


def test_unknown_divisions_are_errors() -> None:
    with pytest.raises(UserError, match="expected 'file', 'paragraph' or 'line', found 'page'"):
        read_documents(write("a.txt", "a\n"), "page")  # type: ignore[arg-type]
