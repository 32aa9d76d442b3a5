"""A folder that was named as a model and is none: what is reported, and what to give instead."""

from pathlib import Path
from typing import Any

import pytest

from regard.storage.model_folder import MAX_SHOWN, not_a_model_message


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder of two models, and of other things."""
    for name in ("words-1", "words-2", "other"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    for name in ("words-1", "words-2"):
        (tmp_path / "runs" / name / "config.yaml").touch()
    return tmp_path / "runs"


def test_the_nearest_name_is_of_a_model(runs: Path) -> None:
    assert not_a_model_message(runs / "wrods-1").endswith(f"did you mean {runs / 'words-1'}?")
    assert "regard runs" in not_a_model_message(runs / "othr")  # other is no model
    assert "regard runs" in not_a_model_message(runs / "deep" / "words-1")


def test_a_folder_of_models_names_them(runs: Path) -> None:
    said = not_a_model_message(runs)
    assert "not a model folder" in said and "more" not in said
    assert str(runs / "words-1") in said and str(runs / "words-2") in said
    assert str(runs / "other") not in said
    for number in range(MAX_SHOWN):
        (runs / f"z{number}").mkdir()
        (runs / f"z{number}" / "config.yaml").touch()
    assert not_a_model_message(runs).endswith(" and 2 more")


def test_a_file_is_called_one(runs: Path, command: Any) -> None:
    (runs / "pairs.tsv").write_text("a\tb\n")
    for words in (("predict", "x"), ("evaluate", "x"), ("inspect", "x"), ("diagnose",)):
        said = command(words[0], runs / "pairs.tsv", *words[1:])
        assert (said.code, said.out) == (2, ""), words
        assert "pairs.tsv: expected a model folder" in said.err
