"""Misuse of the reader: each mistake gets an answer with file, line and what to do."""

import csv
import gzip
import os
from pathlib import Path

import pytest

from regard.core.errors import UserError
from regard.data.reading.read import Pair, read_aligned, read_lines, read_pairs, split_dev
from regard.data.sources.open import DataSpec


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    Path(name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return name


def error_of(name: str, content: str | bytes, *columns: str | None) -> str:
    with pytest.raises(UserError) as error:
        read_pairs(write(name, content), *columns)
    return str(error.value)


def test_misaligned_files_say_both_counts() -> None:
    with pytest.raises(UserError, match=r"a\.de has 2 lines, a\.en has 3"):
        read_aligned(write("a.de", "a\nb\n"), write("a.en", "a\nb\nc\n"))


def test_csv_with_open_quote_names_the_line() -> None:
    message = error_of("open.csv", 'a,b\n"c,d\ne,f\n')
    assert message.startswith("open.csv line 2: invalid CSV: unexpected end of data")


def test_wrong_columns_are_explained() -> None:
    rows = "lemma\tform\ngo\twent\n"
    assert (
        "no column 'lema' in the first line (lemma, form)\nhelp: did you mean 'lemma'?"
        in error_of("c.tsv", rows, "lema", "form")
    )
    assert "columns are counted from 1, found 0" in error_of("c.tsv", rows, "0", "1")
    assert "source and target are the same column" in error_of("c.tsv", rows, "2", "form")
    assert "c.tsv line 2: expected 5 columns or more, found 2" in error_of("c.tsv", rows, "1", "5")


def test_bad_json_lines_are_all_named() -> None:
    content = '{"source": "a", "target": "b"}\n{"source": \n{"source": "a"}\n[1]\n'
    content += '{"source": 3, "target": "x"}\n{"source": "\\ud800", "target": "x"}\n'
    lines = error_of("bad.jsonl", content).split("\n")
    assert lines[0].startswith("bad.jsonl line 2: invalid JSON: ")
    assert lines[1].startswith("bad.jsonl line 3: expected key 'target', found source")
    assert lines[2] == "bad.jsonl line 4: expected a JSON object, found a list"
    assert lines[3] == "bad.jsonl line 5: 'source': expected a string, found a number"
    assert lines[4].startswith("bad.jsonl line 6: 'source': unpaired surrogate")
    assert "jq -c" in error_of("array.json", '[{"source": "a", "target": "b"}]')


def test_wrong_column_counts_are_counted_and_ten_shown() -> None:
    content = "a\tb\n" * 16 + "a\tb\tc\n" + "a\n" * 12 + "a\tb\n"
    lines = error_of("train.tsv", content).split("\n")
    assert lines[0] == "train.tsv line 17: expected 2 columns, found 3"
    assert lines[1] == "train.tsv line 18: expected 2 columns, found 1"
    assert len(lines) == 11
    assert lines[10] == "and 3 more; 13 bad lines in total"


def test_missing_files_name_the_nearest() -> None:
    write("train.tsv", "a\tb\n")
    with pytest.raises(UserError, match=r"trian\.tsv: no such file; did you mean train\.tsv\?"):
        read_pairs("trian.tsv")
    with pytest.raises(UserError, match="the folder data does not exist"):
        read_pairs("data/train.tsv")
    with pytest.raises(UserError, match="no such file"):
        read_lines("trian.tsv")  # at once, not when the first line is asked for


def test_folders_are_errors() -> None:
    Path("data.tsv").mkdir()
    with pytest.raises(UserError, match=r"data\.tsv: expected a file, found a folder"):
        read_pairs("data.tsv")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("e.tsv", "", "e.tsv: the file is empty"),
        ("e.tsv.gz", "\n\n", "e.tsv.gz: the file is empty"),
        ("e.tsv", "\ufeff\n", "e.tsv: the file is empty"),
        (
            "b.tsv",
            b"a\tb\nc\0\td\n",
            "b.tsv line 2: NUL byte: expected UTF-8 text, found a binary file",
        ),
        (
            "x.tsv",
            b"PK\3\4\0\0",
            "x.tsv line 1: NUL byte: expected UTF-8 text, found a zip archive or a spreadsheet",
        ),
        ("u.tsv", "a\tb\n".encode("utf-16"), "iconv -f utf-16 -t utf-8 u.tsv"),
        (
            "one.tsv",
            "a\nb\n",
            "one.tsv line 1: expected 2 columns, source and target, separated by tab",
        ),
        ("one.tsv", "a,b\nc,d\n", "if commas separate the columns, name the file .csv"),
        ("one.csv", "a\nb\n", "separated by comma; found 1 in all 2"),
        ("t.tsv", "a\t\nb\t \n", "t.tsv: the target is empty in all 2 pairs"),
        ("t.tsv", "\ta\n\tb\n", "t.tsv: the source is empty in all 2 pairs"),
        ("h.tsv", "source\ttarget\n", "h.tsv: no pairs, only a header"),
        ("m.tsv", "a\tb\rc\td\r", "lines end in CR only"),
    ],
)
def test_unusable_files_are_explained(name: str, content: str | bytes, message: str) -> None:
    assert message in error_of(name, content)


def test_latin1_names_line_and_byte_and_the_way_out() -> None:
    lines = error_of("l.tsv", "a\tb\ncaf\u00e9\tx\n\u00fc\ty\n".encode("latin1")).split("\n")
    assert (
        lines[0] == "l.tsv line 2: not UTF-8: byte 0xE9 at position 4 (in Latin-1: 'caf\u00e9\\tx')"
    )
    assert lines[1].startswith("l.tsv line 3: not UTF-8: byte 0xFC at position 1")
    assert "iconv -f latin1 -t utf-8 l.tsv" in lines[2]


def test_broken_gzip_is_explained() -> None:
    whole = gzip.compress(os.urandom(1000).hex().encode())
    assert "g.tsv: truncated gzip file" in error_of("g.tsv", whole[:-100])
    assert "g.tsv: corrupted gzip file" in error_of("g.tsv", whole[:-8] + b"\0" * 8)


def test_one_example_is_too_few_to_split() -> None:
    with pytest.raises(UserError, match="1 pair with 1 distinct source: at least 2 sources"):
        split_dev([Pair("a", "b", 1)])
    with pytest.raises(UserError, match="2 pairs with 1 distinct source"):
        split_dev([Pair("a", "b", 1), Pair("a", "c", 2)])


def test_a_key_or_column_name_that_occurs_twice_is_an_error() -> None:
    rows = '{"source": "a", "target": "b"}\n{"source": "a", "target": "b", "source": "c"}\n'
    message = error_of("twice.jsonl", rows)
    assert message == "twice.jsonl line 2: invalid JSON: key 'source' occurs twice in an object"
    rows = "\nsource\ttarget\tsource\na\tb\tc\n"
    message = error_of("twice.tsv", rows)
    assert "twice.tsv line 2: column name 'source' occurs 2 times: columns 1, 3" in message
    rows = "lemma,form,form\na,b,c\n"
    assert "twice.csv line 1: column name 'form'" in error_of("twice.csv", rows, "lemma", "form")
    assert read_pairs("twice.csv", "lemma", "3").pairs == [Pair("a", "c", 2)]
    assert read_pairs(write("unused.tsv", "source\ttarget\tx\tx\na\tb\tc\td\n")).pairs


def test_long_cells_of_csv_are_read_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a" * 200_000
    assert read_pairs(write("long.csv", f'{text},b\n"{text}",c\n')).pairs[1].source == text
    before = csv.field_size_limit(1000)
    try:
        monkeypatch.setattr("regard.data.reading.table_formats.MAX_LINE", 1000)
        message = error_of("long.csv", f"a,b\n{'a' * 1001},b\n")
    finally:
        csv.field_size_limit(before)
    assert "long.csv line 2: invalid CSV: a cell has more than 1,000 characters" in message


def test_a_large_file_without_line_ends_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size is not the memory that it takes."""
    monkeypatch.setenv("REGARD_MEMORY", "1KB")
    monkeypatch.setattr("regard.data.reading.lines.MAX_LINE", 2000)
    monkeypatch.setattr("regard.data.sources.textfile.CHUNK", 100)
    path = write("endless.tsv.gz", "a\tb\n" * 100 + "a" * 9000)
    with pytest.raises(UserError, match=r"endless\.tsv\.gz line 101: no line end within"):
        DataSpec(path).read_large()
