"""Engine auto: the fastest engine that agrees with torch."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.data.tensors.padded import Padded, pad
from regard.data.tensors.special import EOS
from regard.exchange import auto_engine as auto_engine
from regard.exchange.ctranslate2_engine import CTranslate2Engine
from regard.inference.torch_engine import TorchEngine
from regard.search import Beam, SearchRequest

from .exportable import KINDS, LETTERS, random_model

pytest.importorskip("ctranslate2")


def test_auto_measures_where_there_is_enough_to_answer(
    exported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    model, _ = exported("pre")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    monkeypatch.setattr("regard.exchange.auto_engine.TRIAL_SECONDS", 0.02)
    monkeypatch.setattr(
        "regard.exchange.auto_engine.OTHERS", (auto_engine.EngineChoice("ctranslate2"),)
    )
    auto = regard.load(model.folder_, engine="auto")
    assert auto.predict(["abc"]) == model.predict(["abc"])
    assert "engine auto" not in capsys.readouterr().err
    chance = random.Random(5)
    many = ["".join(chance.choices(LETTERS, k=chance.randint(1, 9))) for _ in range(210)]
    assert auto.predict(many) == model.predict(many)
    said = capsys.readouterr().err
    assert (
        "engine auto: torch " in said and ", ctranslate2 " in said and "sources/s; using " in said
    )
    auto.predict(many)
    assert "engine auto" not in capsys.readouterr().err


def test_auto_never_takes_an_engine_that_answers_otherwise(
    exported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    model, _ = exported("pre")
    other = random_model(tmp_path / "run", KINDS["post"])
    engine = TorchEngine(other.model_)
    monkeypatch.setattr(auto_engine, "TRIAL_SECONDS", 0.0)
    monkeypatch.setattr(auto_engine.SpeedTrial, "run", _always_faster(auto_engine.SpeedTrial.run))
    first = TorchEngine(model.model_)
    auto = auto_engine.AutoEngine(first, lambda choice: engine)
    source = pad([[5 + i % 7, 6, EOS] for i in range(200)])

    def find(engine: Any, part: list[int]) -> Any:
        some = Padded(source.data[part], source.mask[part])
        found = engine.run(Beam(), SearchRequest(some, torch.full((len(part),), 12)))
        return [best for best, *_ in found]

    list(auto.map_batches(find, [list(range(i, i + 20)) for i in range(0, 200, 20)]))
    assert auto.engine is first and auto.save_choice() == ["torch", None]
    assert "equal" in capsys.readouterr().err


def test_auto_leaves_what_is_too_long_to_torch(
    exported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CTranslate2 is the fastest; of sources and answers it is given only those it has places for,
    in the trial and afterwards."""
    model, _ = exported("pre")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    monkeypatch.setattr(auto_engine, "TRIAL_SECONDS", 0.0)
    monkeypatch.setattr(auto_engine, "OTHERS", (auto_engine.EngineChoice("ctranslate2"),))
    monkeypatch.setattr(auto_engine.SpeedTrial, "run", _always_faster(auto_engine.SpeedTrial.run))
    opened, given = auto_engine.AutoEngine._open, []

    def short(*which: Any) -> Any:
        found = opened(*which)
        engine = found.engine
        engine.max_source_length, run = 6, engine.run
        monkeypatch.setattr(
            engine, "run", lambda search, one: given.append(one.source) or run(search, one)
        )
        return found

    monkeypatch.setattr(auto_engine.AutoEngine, "_open", short)
    auto = regard.load(model.folder_, engine="auto")
    chance = random.Random(5)
    many = ["".join(chance.choices(LETTERS, k=chance.randint(1, 9))) for _ in range(210)]
    assert auto.predict(many) == model.predict(many)
    assert auto.predictor_.engine.save_choice() == ["ctranslate2", None] and given
    given.clear()
    for text in ("abc", "abcabcabc"):
        assert auto.predict([text]) == model.predict([text])
    assert [len(source.data[0]) for source in given] == [4]  # abc and the end
    engine = auto.predictor_.engine.engine
    engine.engine.max_target_length = 20
    given.clear()
    for length, limit, fits in ((6, 20, 1), (7, 20, 0), (6, 21, 0)):
        request = SearchRequest(pad([[5] * length]), torch.tensor([limit]))
        engine.run(Beam(), request)
        assert len(given) == fits
        given.clear()


def test_the_engine_of_a_first_part_is_taken_again(
    exported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = exported("pre")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    auto = regard.load(model.folder_, engine="auto").predictor_.engine
    auto.restore_choice(None)
    assert auto.save_choice() is None and auto.engine is auto.torch
    auto.restore_choice(["ctranslate2", "int8"])
    assert isinstance(auto.engine.engine, CTranslate2Engine)
    assert auto.save_choice() == ["ctranslate2", "int8"]
    monkeypatch.setattr(auto_engine.AutoEngine, "_select", None)  # nothing is measured any more
    assert list(auto.map_batches(lambda engine, part: engine, [list(range(500))])) == [auto.engine]
    auto.restore_choice(["torch", None])
    assert auto.engine is auto.torch and auto.save_choice() == ["torch", None]


def _always_faster(run: Any) -> Any:
    """Trials that each seem ten times as fast as the previous one."""
    rates = [0.01]

    def faster(self: Any, engine: Any) -> Any:
        rates[0] *= 10
        return run(self, engine)[0], rates[0]

    return faster
