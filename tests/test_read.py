"""Reading: every format gives the same pairs, and what was recognized is reported."""

import gzip
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

import regard
from regard.core.errors import UserError
from regard.data.reading.read import (
    Example,
    Pair,
    group,
    read_aligned,
    read_lines,
    read_pairs,
    split_dev,
)

PAIRS = [Pair("a", "b", 1), Pair("c d", "e", 2)]


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    Path(name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return name


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("train.tsv", "a\tb\nc d\te\n"),
        ("train.txt", "a\tb\nc d\te"),
        ("train.csv", 'a,b\n"c d",e\n'),
        ("train.jsonl", '{"source": "a", "target": "b"}\n{"target": "e", "source": "c d"}\n'),
        ("train.json", '{"source": "a", "target": "b"}\n{"target": ["e"], "source": "c d"}\n'),
    ],
)
def test_formats_agree(name: str, content: str, ending: str) -> None:
    found = read_pairs(write(name + ending, content))
    assert found.pairs == PAIRS
    assert (found.name, found.path) == ("train", name + ending)
    assert len(found.notes) == 1


@pytest.mark.parametrize(
    ("content", "note"),
    [
        ("a\tb\nc d\te\n", "read as TSV, guessed from the first lines"),
        ("a,b\nc d,e\n", "read as CSV, guessed from the first lines"),
        ('{"source":"a","target":"b"}\n{"source":"c d","target":"e"}\n', "read as JSONL, guessed"),
    ],
)
def test_unknown_suffixes_are_guessed_and_noted(content: str, note: str) -> None:
    found = read_pairs(write("train.data", content))
    assert found.pairs == PAIRS
    assert found.notes[0].startswith(note)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (b"a\tb\nc d\te\n", gzip.compress(b"a\tb\nc d\te\n")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        found = read_pairs("-")
        assert (found.pairs, found.name) == (PAIRS, "standard-input")


def test_gzip_is_known_by_its_bytes() -> None:
    assert read_pairs(write("train.tsv", gzip.compress(b"a\tb\nc d\te\n"))).pairs == PAIRS


def test_two_aligned_files() -> None:
    found = read_aligned(write("train.de", "a\n\nc\r\n"), write("train.en.gz", "x\ny\nz\n"))
    assert found.pairs == [Pair("a", "x", 1), Pair("", "y", 2), Pair("c", "z", 3)]
    assert found.name == "train"
    assert "train.de: Windows line ends (CR LF) removed from 1 lines" in found.notes


@given(some.text(some.characters(exclude_characters="\n\t\r\0", exclude_categories=["Cs"])))
def test_lines_end_at_newlines_only(text: str) -> None:
    odd = "x\u2028\u0085\x0b\x0c\x1c" + text
    found = read_pairs(write("odd.tsv", f"{odd}\ty\n{odd}\ty\r\n"))
    assert [pair.source for pair in found.pairs] == [odd, odd]
    assert [pair.target for pair in found.pairs] == ["y", "y"]


def test_byte_order_mark_line_ends_and_blank_lines_are_noted() -> None:
    found = read_pairs(write("windows.tsv", "\ufeffa\tb\r\n\r\nc d\te\r\n"))
    assert found.pairs == [Pair("a", "b", 1), Pair("c d", "e", 3)]
    assert found.notes[1:] == [
        "byte order mark removed",
        "Windows line ends (CR LF) removed from 3 lines",
        "skipped: 1 blank lines",
    ]


def test_csv_quoting() -> None:
    found = read_pairs(write("q.csv", '"a, ""b""",c\r\n"two\nlines",d\r\ne,f\u2028g\r\n'))
    assert found.pairs == [
        Pair('a, "b"', "c", 1),
        Pair("two\nlines", "d", 2),
        Pair("e", "f\u2028g", 4),
    ]
    assert read_pairs(write("semicolon.csv", "a;b\nc d;e\n")).pairs == PAIRS


def test_columns_by_number_name_and_list() -> None:
    rows = "lemma\tform\tfeatures\ngo\twent\tV;PST\nrun\tran\tV;PST\n"
    for source, target in (("lemma,features", "form"), ("1,3", "2"), ("1,features", "form")):
        found = read_pairs(write("inflect.tsv", rows), source, target)
        assert found.pairs[0] == Pair("go V;PST", "went", 2)
        assert len(found.pairs) == 2
    assert "first line is a header: lemma, form, features" in found.notes
    assert "source is column 1 (lemma) + 3 (features), target is column 2 (form)" in found.notes


def test_known_headers_choose_their_columns() -> None:
    found = read_pairs(write("h.csv", "id,Label,Text\n1,good,I like it\n"))
    assert found.pairs == [Pair("I like it", "good", 2)]
    found = read_pairs(write("no-header.tsv", "word\tmot\ntext\ttexte\n"))
    assert len(found.pairs) == 2


def test_further_columns_are_reported() -> None:
    found = read_pairs(write("three.tsv", "a\tb\tx\nc d\te\ty\n"))
    assert found.pairs == PAIRS
    assert "3 columns: the first two are source and target" in found.notes[1]


def test_json_keys_and_alternatives() -> None:
    content = '{"word": "read", "tag": "V", "say": ["R IY D", "R EH D"]}\n'
    found = read_pairs(write("k.jsonl", content), "word,tag", "say")
    assert found.pairs == [Pair("read V", "R IY D", 1), Pair("read V", "R EH D", 1)]
    assert "source is word + tag, target is say" in found.notes


def test_some_empty_sides_are_kept() -> None:
    found = read_pairs(write("some.tsv", "a\t\n\tb\nc\td\n"))
    assert found.pairs == [Pair("a", "", 1), Pair("", "b", 2), Pair("c", "d", 3)]


def test_lines_stream() -> None:
    write("in.txt", "\ufeffa\r\n\nb\u2028c")
    assert list(read_lines("in.txt")) == ["a", "", "b\u2028c"]
    lines = read_lines(write("bad.txt", b"a\n\xe9\n"))
    assert next(lines) == "a"
    with pytest.raises(UserError, match=r"bad\.txt line 2: not UTF-8: byte 0xE9"):
        next(lines)


def test_standard_input_streams_line_by_line() -> None:
    module = "regard.data.reading.read"
    code = f"from {module} import read_lines\nfor x in read_lines('-'): print(x, flush=True)"
    environment = os.environ | {"PYTHONPATH": str(Path(regard.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdin and process.stdout
        for line in ("first\n", "second\n"):
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline() == line  # before the input has ended
        process.stdin.close()


def test_dev_set_depends_on_the_source_only() -> None:
    pairs = [Pair(f"word {n % 300}", f"target {n}", n) for n in range(900)]
    train, dev = split_dev(pairs)
    assert len({pair.source for pair in dev}) == 30
    assert not {pair.source for pair in train} & {pair.source for pair in dev}
    assert sorted(train + dev, key=lambda pair: pair.line) == pairs
    backwards = split_dev(pairs[::-1])
    assert {pair.source for pair in backwards[1]} == {pair.source for pair in dev}


def test_dev_set_has_sensible_sizes() -> None:
    many = [Pair(str(n), "x", n) for n in range(12_000)]
    assert len(split_dev(many)[1]) == 1_000
    train, dev = split_dev(many[:2])
    assert (len(train), len(dev)) == (1, 1)


def test_repeated_sources_are_alternatives() -> None:
    pairs = [Pair("b", "1", 1), Pair("a", "2", 2), Pair("b", "3", 3), Pair("b", "1", 4)]
    assert group(pairs) == [Example("b", ("1", "3")), Example("a", ("2",))]
