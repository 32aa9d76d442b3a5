"""Inflection data: features are whole tokens in training, prediction, inspection and engines."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.exchange.engine_choice import load_predictor

SETTINGS = [
    f"model.{side}.{setting}"
    for side in ("encoder", "decoder")
    for setting in ("kind=transformer", "layers=1", "width=16", "heads=2")
]
FEATURES = {"V;PST": "ed", "V;PRS;3;SG": "s", "V;V.PTCP;PRS": "ing"}


@pytest.fixture(scope="module")
def inflector(made_once: Callable[..., Path], command: Callable[..., Any]) -> Path:
    """The folder of a tiny model that inflects, and its data: lemma, form, features."""

    def make(folder: Path) -> None:
        generator = random.Random(5)
        lemmas = ["".join(generator.choices("abcdlm", k=4)) for _ in range(40)]
        rows = [f"{lemma}\t{lemma}{end}\t{f}\n" for lemma in lemmas for f, end in FEATURES.items()]
        (folder / "train.tsv").write_text("".join(rows))
        columns = ("--source-column", "1,3", "--target-column", "2")
        chosen = [word for setting in SETTINGS for word in ("--set", setting)]
        out = ("--out", folder / "run", "--steps", "25", *chosen)
        said = command("train", folder / "train.tsv", *columns, *out)
        assert said.code == 0, said.err
        (folder / "said.txt").write_text(said.err)

    return made_once("inflector", make)


def test_features_are_tokens_in_every_command(inflector: Path, command: Callable[..., Any]) -> None:
    said = (inflector / "said.txt").read_text()
    assert "auto: task.source.tokenizer=char_features (100% of the lines have a feature" in said
    run = inflector / "run"
    saved = json.loads((run / "vocabulary" / "source.json").read_text())
    assert saved["kind"] == "char_features"
    assert {token for token in saved["tokens"] if len(token) > 1} == {
        *(";V", ";PST", ";PRS", ";3", ";SG", ";V.PTCP")
    }
    found = command("predict", run, "dam V;PST;FUT", "--json")
    assert found.code == 0, found.err
    assert json.loads(found.out)["unknown_tokens"] == [";FUT"]
    shown = command("inspect", run, "dam V;PST")
    assert shown.code == 0 and ";PST" in shown.out
    columns = ("--source-column", "1,3", "--target-column", "2")
    assert command("evaluate", run, inflector / "train.tsv", *columns).code == 0


@pytest.mark.parametrize("engine", ["onnx", "ctranslate2"])
def test_engines_read_the_same_features(
    engine: str, inflector: Path, tmp_path: Path, command: Callable[..., Any]
) -> None:
    pytest.importorskip("onnxruntime" if engine == "onnx" else engine)
    out = tmp_path / "out"
    said = command("export", inflector / "run", "--to", engine, "--out", out)
    assert said.code == 0, said.err
    texts = ["dam V;PST", "mad V;PRS;3;SG", "lac V;V.PTCP;PRS"]
    ours = [one.text for one in load_predictor(inflector / "run").predict(texts)]
    assert [one.text for one in load_predictor(out).predict(texts)] == ours
