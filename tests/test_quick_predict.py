"""Texts on the command line, predicted by CTranslate2 without torch."""

import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.exchange.engine_records import EngineChoice, EngineRecord, save_record
from regard.exchange.export import cached_export
from regard.exchange.quick_predict import quick_predict

from .exportable import LETTERS

pytest.importorskip("ctranslate2")


def words(count: int, seed: int = 6) -> list[str]:
    chance = random.Random(seed)
    return ["".join(chance.choices(LETTERS, k=chance.randint(1, 9))) for _ in range(count)]


def quick(folder: Path, texts: list[str], nbest: int = 1, **changes: Any) -> Any:
    return quick_predict(folder, texts, nbest, None, None, changes)


@pytest.mark.parametrize("kind", ["pre", "shared"])
def test_predictions_are_those_of_the_engine(kind: str, exported: Any) -> None:
    """With another beam, n-best lists and unknown characters; None where regard has to search."""
    _, folder = exported(kind)
    model, found = regard.load(folder), 0
    for text in [*words(25), "Zoë!", "ABC"]:
        one = quick(folder, [text], nbest=2, beam=3, length_penalty=1.0)
        if one is not None:
            found += 1
            assert one == model.predict_detailed([text], nbest=2, beam=3, length_penalty=1.0)
    assert found >= 8


def test_torch_is_not_imported(exported: Any) -> None:
    model, folder = exported("pre")
    text = next(text for text in words(50) if quick(folder, [text]))
    code = (
        "import sys; from regard.cli import main\n"
        "try: main()\n"
        "finally: print('torch' in sys.modules)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, "predict", str(folder), text],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.splitlines() == [model.predict([text])[0], "False"]


def test_the_command_prints_the_same_either_way(exported: Any, command: Any) -> None:
    """Some of these need the search of regard; with --batch-size or --json nothing changes."""
    model, folder = exported("pre")
    texts = words(12)
    assert quick(folder, texts) is None
    expected = "".join(f"{text}\n" for text in model.predict(texts))
    assert command("predict", folder, *texts).out == expected
    text = next(text for text in words(50) if quick(folder, [text]))
    lines = {command("predict", folder, text, *more).out for more in ((), ("--batch-size", "3"))}
    assert lines == {f"{model.predict([text])[0]}\n"}
    ways = ((), ("--set", f"search.beam={model.config_.search.beam}"))
    said = [command("predict", folder, text + "Ä", "--json", "--nbest", "2", *w) for w in ways]
    assert said[0].out == said[1].out and said[0].err == said[1].err and "Ä" in said[0].err


@pytest.mark.parametrize(
    "changes", [{"coverage_penalty": 0.5}, {"top_k": 3}, {"beam": 0}, {"kind": "sample"}], ids=str
)
def test_other_searches_are_left_to_the_usual_path(changes: Any, exported: Any) -> None:
    _, folder = exported("pre")
    text = next(text for text in words(50) if quick(folder, [text]))
    assert quick(folder, [text], **changes) is None


def test_errors_are_left_to_the_usual_path(exported: Any, command: Any, tmp_path: Path) -> None:
    model, folder = exported("pre")
    assert quick(folder, ["\udc80"]) is None and quick(folder, ["a" * 3000]) is None
    assert quick(model.folder_, ["abc"]) is None  # a run folder, for torch
    assert quick_predict(folder, ["abc"], 1, "torch", None, {}) is None
    assert quick_predict(folder, ["abc"], 1, None, "int8", {}) is None
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "vocabulary" / "task.json").write_text("{}")
    assert quick(copy, ["abc"]) is None
    assert "task.json" in command("predict", copy, "abc").err
    (copy / "config.yaml").write_text("task: {kind: transduce}\n")
    assert quick(copy, ["abc"]) is None


def test_a_run_folder_uses_its_export_in_the_cache(
    exported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    model, folder = exported("pre")
    text = next(text for text in words(50) if quick(folder, [text]))
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    ask = (model.folder_, [text], 1, "ctranslate2", None, {})
    assert quick_predict(*ask) is None
    cached_export(model.predictor_, "ctranslate2", None)
    assert quick_predict(*ask) == quick(folder, [text])
    auto = (*ask[:3], "auto", None, {})
    assert quick_predict(*auto) is None  # nothing is selected yet
    save_record(model.folder_, EngineRecord(EngineChoice("ctranslate2"), "as measured"))
    assert quick_predict(*auto) == quick(folder, [text])
    assert "engine auto: using ctranslate2, selected earlier" in capsys.readouterr().err
