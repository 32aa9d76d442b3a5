"""Labels and numbers for texts and for vectors: every format, and every mistake with its line."""

import gzip
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.core.errors import UserError
from regard.data.reading.labeled import (
    looks_like_vectors,
    read_labeled,
    read_numbers,
    read_vectors,
)
from regard.data.reading.read import Pair, read_pairs
from regard.inputs.vectors import VectorInput, standard

LABELED = [Pair("a b", ("good",), 1), Pair("c, d", ("bad",), 2)]
NUMBERED = [Pair("a b", (1.5,), 1), Pair("c, d", (-2.0,), 2)]


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    Path(name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return name


def error_of(read: Callable[..., Any], name: str, content: str, *more: Any, **named: Any) -> str:
    with pytest.raises(UserError) as error:
        read(write(name, content), *more, **named)
    return str(error.value)


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.tsv", "a b\tgood\nc, d\tbad\n"),
        ("t.tsv", "a b\tgood\r\nc, d\tbad\r\n"),
        ("t.csv", 'a b,good\n"c, d",bad\n'),
        ("t.jsonl", '{"text": "a b", "label": "good"}\n{"text": "c, d", "label": ["bad"]}\n'),
        ("t.json", '{"source": "a b", "target": "good"}\n{"source": "c, d", "target": "bad"}\n'),
    ],
)
def test_labels(name: str, content: str, ending: str) -> None:
    found = read_labeled(write(name + ending, content))
    assert found.pairs == LABELED
    assert (found.name, found.path) == ("t", name + ending)
    assert found.notes[0].startswith("read as ")


def test_columns_and_headers() -> None:
    assert read_labeled(write("t.tsv", "HUM\tHUM:ind\tWho ?\n"), "3", "1").pairs == [
        Pair("Who ?", ("HUM",), 1)
    ]
    for header in ("text,category", "Review,Sentiment"):
        found = read_labeled(write("t.csv", f"{header}\na,x\n"))
        assert found.pairs == [Pair("a", ("x",), 2)]
        assert any(note.startswith("first line is a header") for note in found.notes)


def test_several_labels() -> None:
    found = read_labeled(write("t.tsv", "a\tx|y\nb\t\nc\tz | x|z\n"), separator="|")
    assert [pair.target for pair in found.pairs] == [("x", "y"), (), ("z", "x")]
    assert "whitespace around labels removed: 2" in found.notes
    assert "duplicate labels of a text removed: 1" in found.notes
    content = '{"text": "a", "label": ["x", "y"]}\n{"text": "b", "label": []}\n'
    found = read_labeled(write("t.jsonl", content))
    assert [pair.target for pair in found.pairs] == [("x", "y"), ()]
    # What a list means to a transducer has not changed: alternatives.
    assert len(read_pairs(write("p.jsonl", content.split("\n")[0])).pairs) == 2


def test_json_numbers_are_labels() -> None:
    found = read_labeled(write("t.jsonl", '{"text": "a", "label": 1}\n{"text":"b","label":true}'))
    assert [pair.target for pair in found.pairs] == [("1",), ("true",)]
    assert "JSON numbers and booleans read as label text: 2" in found.notes


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    data = gzip.compress(b"a b\tgood\nc, d\tbad\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    found = read_labeled("-")
    assert (found.pairs, found.path) == (LABELED, "standard input")


@pytest.mark.parametrize(
    ("name", "content", "several", "message"),
    [
        ("t.tsv", "a\tx\nb\t \n", None, "t.tsv line 2: expected a label, found ' '"),
        ("t.tsv", "a\tx\nb\t\n", None, "t.tsv line 2: expected a label, found nothing"),
        ("t.tsv", "a\tx|y\nb\tx| |y\n", "|", "t.tsv line 2: expected a label, found ' ' in"),
        ("t.tsv", "a\tx|y\nb\tx||y\n", "|", "line 2: expected a label, found nothing in 'x||y'"),
        ("t.tsv", "a\tx\nb\ty\tz\n", None, "t.tsv line 2: expected 2 columns, found 3"),
        ("t.tsv", "", None, "t.tsv: the file is empty: expected texts and their labels"),
        ("t.tsv", "text\tlabel\n", None, "t.tsv: no pairs, only a header"),
        ("t.tsv", "a\t\nb\t\n", "|", "t.tsv: the target is empty in all 2 pairs"),
        ("t.jsonl", '{"text": "a", "label": []}', None, "t.jsonl: no label in all 1 lines"),
        ("t.jsonl", '{"text": " ", "label": "x"}', None, "t.jsonl: no text in all 1 lines"),
        (
            "t.jsonl",
            '{"text": "a", "label": null}',
            None,
            "line 1: label: expected a string, found null",
        ),
        (
            "t.jsonl",
            '{"text": "a", "label": ["x", " "]}',
            None,
            "line 1: expected a label, found ' '",
        ),
        (
            "t.jsonl",
            '{"text": "a", "label": "x"}\n{"text": "b"}',
            None,
            "line 2: expected key 'label'",
        ),
        ("t.jsonl", '{"text": "a", "label": "x"}\n{"text"', None, "t.jsonl line 2: invalid JSON"),
    ],
)
def test_bad_labels(name: str, content: str, several: str | None, message: str) -> None:
    assert message in error_of(read_labeled, name, content, separator=several)


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.tsv", "a b\t1.5\nc, d\t-2\n"),
        ("t.tsv", "a b\t1.5\r\nc, d\t-2e0\r\n"),
        ("t.csv", 'a b, 1.5\n"c, d",-2\n'),
        ("t.jsonl", '{"text": "a b", "score": 1.5}\n{"text": "c, d", "score": "-2"}\n'),
    ],
)
def test_numbers(name: str, content: str, ending: str) -> None:
    assert read_numbers(write(name + ending, content)).pairs == NUMBERED


def test_several_numbers() -> None:
    for header, chosen in (("", "2,3"), ("words\tx\ty\n", "2,3"), ("words\tx\ty\n", "x,y")):
        found = read_numbers(write("t.tsv", f"{header}a\t1\t2\nb\t3\t4\n"), "1", chosen)
        assert [pair.target for pair in found.pairs] == [(1.0, 2.0), (3.0, 4.0)]
        assert ("first line is a header: words, x, y" in found.notes) == bool(header)
    found = read_numbers(write("t.jsonl", '{"t": "a", "x": 1, "y": 2}'), "t", "x,y")
    assert found.pairs == [Pair("a", (1.0, 2.0), 1)]
    found = read_numbers(write("t.jsonl", '{"text": "a", "label": [1, 2]}'))
    assert found.pairs == [Pair("a", (1.0, 2.0), 1)]


@pytest.mark.parametrize("cell", ["abc", "nan", "inf", "1_000", "1,5", "1 2"])
def test_cells_that_are_not_numbers(cell: str) -> None:
    message = f"t.tsv line 2: column 2: expected a finite number, found {cell!r}"
    assert message in error_of(read_numbers, "t.tsv", f"a\t1\nb\t{cell}\nc\t3\n")


def test_bad_numbers() -> None:
    assert "t.tsv line 2: column y: expected a finite number, found nothing" in error_of(
        read_numbers, "t.tsv", "words\tx\ty\na\t1\t\nb\t1\t2\n", "words", "x,y"
    )
    content = '{"text": "a", "label": [1, 2]}\n{"text": "b", "label": [1]}\n'
    assert "t.jsonl line 2: expected 2 numbers as in line 1, found 1" in error_of(
        read_numbers, "t.jsonl", content
    )
    assert "line 1: column label: expected a finite number, found True" in error_of(
        read_numbers, "t.jsonl", '{"text": "a", "label": true}\n'
    )
    assert "t.tsv: the file is empty: expected texts and their numbers" in error_of(
        read_numbers, "t.tsv", "\n"
    )
    # A first row without a number is no header when nothing below is a number either.
    assert "t.tsv line 1: column 2" in error_of(read_numbers, "t.tsv", "a\tx\nb\ty\n")


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "content", "names", "line"),
    [
        ("v.csv", "1,2,3\n4,5,6\n", ["1", "2"], 1),
        ("v.tsv", "1\t2\t3\r\n4\t5\t6\r\n", ["1", "2"], 1),
        ("v.csv", "size,age,price\n1,2,3\n4,5,6\n", ["size", "age"], 2),
        ("v.csv", "size;age;price\n1;2;3\n4;5;6\n", ["size", "age"], 2),
    ],
)
def test_vectors(name: str, content: str, names: list[str], line: int, ending: str) -> None:
    found, features, targets = read_vectors(write(name + ending, content))
    assert found.pairs == [Pair((1.0, 2.0), (3.0,), line), Pair((4.0, 5.0), (6.0,), line + 1)]
    assert features == names
    assert targets == ["price" if line == 2 else "3"]
    assert ("first line is a header: size, age, price" in found.notes) == (line == 2)
    assert looks_like_vectors(name + ending)


def test_vector_columns() -> None:
    path = write("v.csv", "kind,a,b,c\nx,1,2,3\ny,4,5,6\n")
    found, features, targets = read_vectors(path, None, "kind", labels=True)
    assert found.pairs == [Pair((1.0, 2.0, 3.0), ("x",), 2), Pair((4.0, 5.0, 6.0), ("y",), 3)]
    assert (features, targets) == (["a", "b", "c"], ["kind"])
    found, features, targets = read_vectors(path, "c,a", "b")
    assert found.pairs[0] == Pair((3.0, 1.0), (2.0,), 2)
    assert (features, targets) == (["c", "a"], ["b"])
    found, features, targets = read_vectors(path, "2", "3,4")
    assert found.pairs[0] == Pair((1.0,), (2.0, 3.0), 2)
    assert (features, targets) == (["a"], ["b", "c"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\nx,3\n", "v.csv line 3: column a: expected a finite number, found 'x'"),
        ("1,2\n,3\n", "v.csv line 2: column 1: expected a finite number, found nothing"),
        ("nan,2\n1,3\n", "v.csv line 1: column 1: expected a finite number, found 'nan'"),
        ("1,2\n1,inf\n", "v.csv line 2: column 2: expected a finite number, found 'inf'"),
        ("1,2,3\n4,5\n6,7,8\n", "v.csv line 2: expected 3 columns, found 2"),
        ("a,b\n1,2,3\n", "v.csv line 2: expected 2 columns, found 3"),
        ("1,2,3\n4,5\n6,7\n", "v.csv line 1: expected 2 columns, found 3"),
        ("a,b\n", "v.csv: no rows of numbers, only a header"),
        ("", "v.csv: the file is empty: expected rows of numbers"),
    ],
)
def test_bad_vectors(content: str, message: str) -> None:
    assert message in error_of(read_vectors, "v.csv", content)


def test_bad_vector_columns() -> None:
    rows = "a,b\n1,2\n"
    assert "column 1 is both feature and target" in error_of(read_vectors, "v.csv", rows, "a", "a")
    assert "v.csv line 1: --target-column: no column 5: found 2 columns" in error_of(
        read_vectors, "v.csv", rows, None, "5"
    )
    assert "no column 'bb' in the first line (a, b)\nhelp: did you mean 'b'?" in error_of(
        read_vectors, "v.csv", rows, None, "bb"
    )
    assert "expected at least one feature" in error_of(read_vectors, "v.csv", rows, None, "a,b")
    assert "v.csv line 2: column b: expected a label, found nothing" in error_of(
        read_vectors, "v.csv", "a,b\n1, \n", labels=True
    )
    assert "expected one column of labels" in error_of(
        read_vectors, "v.csv", "a,b,c\n1,2,3\n", None, "b,c", labels=True
    )
    assert "cannot be read from JSONL" in error_of(read_vectors, "v.jsonl", "{}\n")


@pytest.mark.parametrize(
    ("name", "content", "columns", "expected"),
    [
        ("x.tsv", "I like it\tgood\nno\tbad\n", [], False),
        ("x.csv", "1,2\n3,4\n", [], True),
        ("x.csv", "1,good\n3,bad\n", [], True),
        ("x.csv", "1,2,x\n3,,y\n", [], True),
        ("x.csv", "1,2,x\n3,four,y\n", [], False),
        ("x.csv", "a,b,c\n", [], False),
        ("x.csv", "text,n,label\nhello,1,x\n", [], False),
        ("x.csv", "text,n,label\nhello,1,x\n", ["n"], True),
        ("x.tsv", "0\tso bad\n1\tso good\n", ["2", "1"], False),
        ("x.tsv", "no table\n", [], False),
        ("x.csv", "1,2\n" * 51 + "x,2\n", [], True),
        ("x.csv", "1,2\n" * 20 + "x,2\n", [], False),
        ("x.jsonl", '{"a": 1}\n', [], False),
        ("x.csv", "\n", [], False),
    ],
)
def test_vectors_are_distinguished_from_texts(
    name: str, content: str, columns: list[str], expected: bool
) -> None:
    assert looks_like_vectors(write(name, content), *columns) is expected


def test_standard_input_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1,2\n3,4\n")))
    assert not looks_like_vectors("-")
    assert len(read_vectors("-")[0].pairs) == 2


def test_numbers_that_overflow_are_errors() -> None:
    rows = "a b\t1.5\nc d\t-1e300\n"
    message = error_of(read_numbers, "n.tsv", rows)
    expected = "n.tsv line 2: column 2: expected a number from -1e+100 to 1e+100, found -1e300"
    assert message.startswith(expected) and "rescale the column" in message
    rows = '{"text": "a", "score": 1}\n{"text": "b", "score": 1e200}\n'
    assert "n.jsonl line 2: column score: expected" in error_of(read_numbers, "n.jsonl", rows)
    rows = "x1,x2,y\n1,2,3\n1,1e101,3\n"
    assert "v.csv line 3: column x2: expected a number" in error_of(read_vectors, "v.csv", rows)
    assert read_numbers(write("n.tsv", "a\t1e99\nb\t-1e99\n")).pairs[0].target == (1e99,)


def test_numbers_from_python_do_not_overflow() -> None:
    with pytest.raises(UserError, match=r"found 1e\+300: too large to standardize"):
        standard(np.array([[1.0], [1e300], [2.0]]))
    vectors = VectorInput([0.0, 0.0], [1.0, 1.0])
    with pytest.raises(UserError, match=r"vector 2: expected .* found 1e\+60 \(number 2\)"):
        vectors.encode([(1.0, 2.0), (1.0, 1e60)])


def test_column_names_of_vectors_are_distinct() -> None:
    rows = "x,x,y\n1,2,3\n4,5,6\n"
    assert looks_like_vectors(write("v.csv", rows))
    message = error_of(read_vectors, "v.csv", rows)
    assert "v.csv line 1: column name 'x' occurs 2 times: columns 1, 2" in message
    assert len(read_vectors("v.csv", "1", "3")[0].pairs) == 2
