"""The column that assigns the rows of a table to splits."""

import json
from pathlib import Path

import pytest

from regard.config.load import load_config
from regard.core.errors import UserError
from regard.data.sources.open import DataSpec, TrainDev, open_test

PARTS = ["train"] * 4 + ["val", "valid"] + ["test"] * 3 + ["rest"]


def _open(spec: DataSpec, task: str, dev: DataSpec | None = None) -> TrainDev:
    found: TrainDev = load_config(None, [f"task.kind={task}"]).task.open(spec, dev or DataSpec())
    return found


def _write(path: Path, rows: list[str]) -> str:
    path.write_text("\n".join(rows) + "\n")
    return str(path)


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("task", ["transduce", "classify", "regress"])
def test_tables_of_texts(tmp_path: Path, task: str, header: bool) -> None:
    rows = [f"text {i}\t{i % 3}\t{part}" for i, part in enumerate(PARTS)]
    path = _write(tmp_path / "a.tsv", ["source\ttarget\tpart"] * header + rows)
    for column in ["3", "part"][: 1 + header]:
        data = _open(DataSpec(path, split_column=column), task)
        assert [pair.source for pair in data.train] == [f"text {i}" for i in range(4)]
        assert [pair.source for pair in data.dev] == ["text 4", "text 5"]
        assert any("not used: test (3), rest (1)" in note for note in data.notes)


def test_vectors_do_not_include_the_split(tmp_path: Path) -> None:
    rows = [f"{i},{part},{i * i},{'ab'[i % 2]}" for i, part in enumerate(PARTS)]
    path = _write(tmp_path / "a.csv", rows)
    data = _open(DataSpec(path, split_column="2"), "classify")
    assert [pair.source for pair in data.train] == [(float(i), float(i * i)) for i in range(4)]
    numbers = _write(tmp_path / "b.csv", [row.rsplit(",", 1)[0] for row in rows])
    assert _open(DataSpec(numbers, split_column="2"), "regress").dev[0].target == (16.0,)


def test_documents_and_tagged_sentences(tmp_path: Path) -> None:
    rows = [json.dumps({"text": f"text {i}", "part": part}) for i, part in enumerate(PARTS)]
    texts = _write(tmp_path / "a.jsonl", rows)
    assert len(_open(DataSpec(texts, split_column="part"), "language-model").train) == 4
    tagged = _write(tmp_path / "b.tsv", [f"a b {i}\tX Y Z\t{p}" for i, p in enumerate(PARTS)])
    spec = DataSpec(tagged, source_column="1", target_column="2", split_column="3")
    assert [pair.source[2] for pair in _open(spec, "tag").dev] == ["4", "5"]


def test_without_dev_rows_a_dev_set_is_held_out(tmp_path: Path) -> None:
    rows = [f"t{i}\t{i}\t{'train' if i < 30 else 'test'}" for i in range(40)]
    data = _open(DataSpec(_write(tmp_path / "a.tsv", rows), split_column="3"), "transduce")
    assert len(data.train) == 27 and len(data.dev) == 3


def test_test_split(tmp_path: Path) -> None:
    rows = [f"t{i}\t{i}\t{part}" for i, part in enumerate(PARTS)]
    spec = DataSpec(_write(tmp_path / "a.tsv", rows), split_column="3", split="test")
    pairs, notes = open_test(spec, DataSpec.read)
    assert [pair.source for pair in pairs] == ["t6", "t7", "t8"]
    assert "split test: 3 of 10 rows" in notes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split_column": "3"}, "line 3: --split-column 3: expected a split, found nothing"),
        ({"split_column": "4"}, "line 1: expected at least 4 columns"),
        ({"split_column": "2"}, "the target is the same column as the split"),
        ({"split_column": "part"}, "--split-column: no column 'part'"),
        ({"split_column": "3,2"}, "expected one column"),
        ({"edges": "x.tsv"}, "--edges: only supported for graphs"),
    ],
)
def test_errors(tmp_path: Path, options: dict[str, str], message: str) -> None:
    path = _write(tmp_path / "a.tsv", ["a\tx\ttrain", "b\ty\tdev", "c\tz\t "])
    with pytest.raises(UserError, match=message):
        _open(DataSpec(path, **options), "transduce")  # type: ignore[arg-type]


def test_errors_of_the_split_itself(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.tsv", ["a\tx\tdev", "b\ty\tdev", "c\tz\ttest"])
    with pytest.raises(UserError, match=r"no row has the split train; found dev .2., test"):
        _open(DataSpec(path, split_column="3"), "transduce")
    with pytest.raises(UserError, match="cannot be combined with --dev"):
        _open(DataSpec(path, split_column="3"), "transduce", DataSpec(path, option="--dev-"))
    with pytest.raises(UserError, match="did you mean test"):
        open_test(DataSpec(path, split_column="3", split="tset"), DataSpec.read)
    with pytest.raises(UserError, match="--split test: no column of splits"):
        open_test(DataSpec(path, split="test"), DataSpec.read)
    with pytest.raises(UserError, match="standard input can be read only once"):
        _open(DataSpec("-", split_column="3"), "tag")
