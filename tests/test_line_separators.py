r"""Only \n ends a line: texts may contain U+2028 and all else that `str.splitlines` splits at."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from regard.core.errors import UserError
from regard.core.files import read_json_lines
from regard.data.reading.documents import read_documents
from regard.data.reading.labeled import read_labeled
from regard.data.reading.read import Pair, read_lines, read_pairs
from regard.data.reading.tagged import read_tagged
from regard.exchange.export.parity import COUNT, some_rows
from regard.storage.output_folder import PSEUDO_LABELS
from regard.storage.pseudo_labels import read_pseudo_labels, write_pseudo_labels

SEPARATORS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
TEXT = f"a{SEPARATORS}b"
ROW = {"source": TEXT, "target": TEXT}


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str) -> str:
    Path(name).write_text(text, "utf-8", newline="\n")
    return name


def test_pseudo_labels_are_read_back() -> None:
    pairs = [Pair(TEXT, (TEXT, "x"), 0), Pair(("a", TEXT), ("y", "z"), 0)]
    write_pseudo_labels(Path(), [(pair, 0.5) for pair in pairs])
    assert len(Path(PSEUDO_LABELS).read_text("utf-8").splitlines()) > 2
    assert read_pseudo_labels(Path()) == pairs


def test_the_samples_of_a_run_are_sources_of_the_export_check() -> None:
    rows = [{"step": 1, "source": text} for text in (TEXT, "c")]
    write("samples.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))

    class Characters:
        def encode_all(self, texts: list[str]) -> list[list[int]]:
            return [list(map(ord, text)) for text in texts]

        def __len__(self) -> int:
            return 10_000

    found = some_rows(SimpleNamespace(source_tokenizer=Characters), Path())
    assert len(found) == COUNT
    assert found[0][:-1] == list(map(ord, TEXT)) and found[1][:-1] == [ord("c")]


def test_a_corrupted_line_is_named() -> None:
    write("rows.jsonl", '{"a": 1}\n\n{"a": \n')
    with pytest.raises(UserError, match=r"rows\.jsonl line 3: corrupted"):
        read_json_lines(Path("rows.jsonl"))
    assert read_json_lines(Path("missing.jsonl")) == []


def test_data_has_the_lines_that_it_shows() -> None:
    pairs = [Pair(TEXT, TEXT, 1), Pair("c", "d", 2)]
    assert read_pairs(write("a.tsv", f"{TEXT}\t{TEXT}\nc\td\n")).pairs == pairs
    assert read_pairs(write("a.csv", f"{TEXT},{TEXT}\nc,d\n")).pairs == pairs
    rows = json.dumps(ROW, ensure_ascii=False) + '\n{"source": "c", "target": "d"}\n'
    assert read_pairs(write("a.jsonl", rows)).pairs == pairs
    assert list(read_lines(write("a.txt", f"{TEXT}\nc\n"))) == [TEXT, "c"]
    assert read_labeled("a.tsv").pairs[0].source == TEXT
    assert [p.target for p in read_documents("a.txt", "line").pairs] == [TEXT, "c"]
    tagged, _ = read_tagged(write("a.conll", f"{TEXT}\tX\nc\tY\n"))
    assert tagged.pairs[0].source == (TEXT, "c")
