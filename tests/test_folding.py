"""Folding: unknown characters are read as similar known ones, and users are told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.data.tensors.special import UNK
from regard.data.tokenizers.features import FeatureTokenizer
from regard.data.tokenizers.folding import Folding
from regard.data.tokenizers.normalized import NormalizedTokenizer
from regard.data.tokenizers.tokenizer import CharTokenizer
from regard.inference.prediction.prediction_warnings import PredictionWarnings
from regard.inputs.text import TextInput
from regard.tasks.values import Prediction

Command = Callable[..., Any]
LETTERS = CharTokenizer(list("abcdefghijklmnopqrstuvwxyz'- "))


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("attention", "attention"),
        ("Attention", "attention"),
        ("Zoë", "zoe"),
        ("Zoe\u0308", "zoe"),
        ("ÉCLAIR", "eclair"),
        ("Ａｂ", "ab"),  # full-width letters
        ("don’t – no", "don't - no"),
        ("a\u0308b\u0308", "ab"),
        ("日7?", "日7?"),  # nothing similar is known
        ("", ""),
    ],
)
def test_fold(text: str, folded: str) -> None:
    assert Folding(LETTERS).fold(text) == folded


def test_known_characters_stay() -> None:
    folding = Folding(CharTokenizer(list("aAeë")))
    assert folding.fold("Aaëe") == "Aaëe"
    assert folding.fold("AE") == "Ae"
    assert folding.fold("ae\u0308") == "aë"  # the composed form is known
    assert Folding(CharTokenizer(list("ABC"))).fold("abc") == "ABC"


def test_changes_are_listed_once() -> None:
    assert Folding(LETTERS).changes("AnnA Zoë") == ("A → a", "Z → z", "ë → e")
    assert Folding(LETTERS).changes("anna") == ()


def test_features_are_not_folded() -> None:
    folding = Folding(FeatureTokenizer([*"go ", ";V", ";PST"]))
    assert folding.fold("Go V;PST") == "go V;PST"
    assert folding.fold("go V;NEW") == "go V;NEW"


def test_decomposed_vocabulary() -> None:
    tokenizer = NormalizedTokenizer(CharTokenizer(["e", "\u0308"]), "nfd")
    assert Folding(tokenizer).fold("ë") == "ë"
    assert tokenizer.encode(Folding(tokenizer).fold("É")) == tokenizer.encode("e")


@pytest.mark.parametrize("add_bos", [False, True])
def test_inputs_fold_what_they_read(add_bos: bool) -> None:
    source = TextInput(LETTERS, lowercase=False, add_bos=add_bos)
    plain, folded = source.encode(["zoe"]).row(0), source.encode(["Zoë"]).row(0)
    assert plain.tolist() == folded.tolist()
    assert source.unknown("Zoë 7") == ("7",) and source.folded("Zoë 7") == ("Z → z", "ë → e")
    assert source.names("Zo")[-3:-1] == ["z", "o"]


def test_words_and_language_models_do_not_fold() -> None:
    source = TextInput(LETTERS, lowercase=False, add_bos=False, folds=False)
    assert UNK in source.encode(["Zoe"]).row(0) and source.folded("Zoe") == ()


def test_warnings_name_the_changes(capsys: pytest.CaptureFixture[str]) -> None:
    warnings = PredictionWarnings()
    for _ in range(2):
        warnings.add(Prediction("x", None, folded=("A → a",)))
    again = PredictionWarnings()
    again.restore(warnings.record())
    again.print()
    assert "were read as: A → a\n" in capsys.readouterr().err


def test_predictions_do_not_depend_on_case(command: Command, tmp_path: Path) -> None:
    words = ["ab", "abc", "cab", "bca", "ba", "cb", "ac", "bac"]
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{word}\t{word[::-1]}\n" for word in words * 3))
    command("train", pairs, "--steps", "3", "--out", tmp_path / "run")
    lower = command("predict", tmp_path / "run", "cab")
    upper = command("predict", tmp_path / "run", "CÁB")
    assert lower.out == upper.out and "read as" not in lower.err
    assert "were read as: C → c, Á → a, B → b" in upper.err and "unknown" not in upper.err
    said = command("predict", tmp_path / "run", "CÁB", "--json")
    assert '"folded": ["C → c", "Á → a", "B → b"]' in said.out
    page = tmp_path / "page.html"
    said = command("inspect", tmp_path / "run", "CÁB", "--out", page)
    assert said.code == 0 and "C → c" in page.read_text("utf-8")
