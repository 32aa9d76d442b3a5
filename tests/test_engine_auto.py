"""Engine auto: the fastest engine that agrees with torch."""

import random
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import regard
from regard.core.errors import UserError
from regard.core.files import write_json
from regard.data.reading.read import Example
from regard.data.tensors.padded import Padded, pad
from regard.data.tensors.special import EOS
from regard.exchange import auto_engine, engine_choice, engine_records
from regard.exchange.ctranslate2_engine import CTranslate2Engine
from regard.exchange.dev_metric import DevMetric
from regard.inference.fallback_engine import FallbackEngine
from regard.inference.open_engine import open_engine
from regard.inference.torch_engine import TorchEngine
from regard.search import Beam, Hypothesis, SearchRequest, TokenConstraints

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
        engine.max_source_length, run = 6, engine.run_rows
        monkeypatch.setattr(
            engine,
            "run_rows",
            lambda search, rows, *more: given.append(rows) or run(search, rows, *more),
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
    assert [len(rows[0]) for rows in given] == [4]  # abc and the end
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
    monkeypatch.setattr(auto_engine.AutoEngine, "_fastest", None)  # nothing is measured any more
    assert list(auto.map_batches(lambda engine, part: engine, [list(range(500))])) == [auto.engine]
    auto.restore_choice(["torch", None])
    assert auto.engine is auto.torch and auto.save_choice() == ["torch", None]


def test_a_choice_is_kept_for_the_machine(
    exported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Another processor measures again; an engine that is no longer there is not used."""
    model, folder = exported("pre")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    choice = engine_records.EngineChoice("ctranslate2")
    engine_records.save_record(folder, engine_records.EngineRecord(choice, "as measured"))

    def auto(path: Path = folder, load: Any = lambda choice: open_engine(folder)) -> Any:
        return auto_engine.AutoEngine(TorchEngine(model.model_), load, path)

    assert auto().save_choice() == ["ctranslate2", None]
    assert "using ctranslate2, selected earlier on this machine: as measured" in (
        capsys.readouterr().err
    )
    assert auto(model.folder_).save_choice() is None  # another model

    def missing(choice: Any) -> Any:
        raise UserError("package ctranslate2 is not installed")

    gone = auto(load=missing)
    assert gone.save_choice() is None and gone.engine is gone.torch
    assert "was the fastest, but: package" in capsys.readouterr().err
    (tmp_path / "cpuinfo").write_text("model name : another\nflags : sse2\n\nmodel name : x\n")
    monkeypatch.setattr(engine_records, "CPU_INFO", tmp_path / "cpuinfo")
    assert engine_records.cpu() == ["model name : another", "flags : sse2"]
    assert auto().save_choice() is None


def test_a_selection_is_saved(
    exported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = exported("pre")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    monkeypatch.setattr(auto_engine, "TRIAL_SECONDS", 0.0)
    monkeypatch.setattr(auto_engine, "OTHERS", (auto_engine.EngineChoice("ctranslate2"),))
    monkeypatch.setattr(auto_engine.SpeedTrial, "run", _always_faster(auto_engine.SpeedTrial.run))
    regard.load(model.folder_, engine="auto").predict(["abc", "de"] * 100)
    record = engine_records.load_record(model.folder_)
    assert record is not None
    assert record.choice == ("ctranslate2", None) and "sources/s" in record.why
    assert regard.load(model.folder_, engine="auto").predictor_.engine.save_choice() == [
        "ctranslate2",
        None,
    ]


@pytest.mark.parametrize(("lost", "taken"), [(0.2, True), (0.4, False), (-1.0, True)])
def test_int8_is_judged_by_the_metric_on_dev(
    lost: float, taken: bool, exported: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    model, _ = exported("pre")
    int8 = auto_engine.EngineChoice("ctranslate2", "int8")
    monkeypatch.setattr(auto_engine, "TRIAL_SECONDS", 0.0)
    monkeypatch.setattr(auto_engine, "OTHERS", (int8,))
    monkeypatch.setattr(auto_engine.SpeedTrial, "run", _always_faster(auto_engine.SpeedTrial.run))
    dev: Any = SimpleNamespace(name="bleu", lost=lambda engine: lost)
    auto = auto_engine.AutoEngine(
        TorchEngine(model.model_), lambda choice: TorchEngine(model.model_), None, dev
    )
    list(
        auto.map_batches(lambda engine, part: [Hypothesis((5,), 0.0, ())] * len(part), [[0] * 200])
    )
    assert auto.save_choice() == (["ctranslate2", "int8"] if taken else ["torch", None])
    assert f"(bleu {-lost:+.2f} on dev)" in capsys.readouterr().err


def test_the_metric_on_dev(exported: Any, tmp_path: Path) -> None:
    """Another model, compared on the pairs that run.json names; without files, None."""
    model, _ = exported("pre")
    assert DevMetric(model.predictor_).lost(model.predictor_.engine) is None
    folder = shutil.copytree(model.folder_, tmp_path / "run")
    texts = ["abc", "de", "fghi", "jkl"]
    pairs = [*zip(texts, model.predict(texts), strict=True)]
    (tmp_path / "dev.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    data = {"data": str(tmp_path / "dev.tsv")}
    write_json(folder / "run.json", {"format": 4, "data": data, "dev": data})
    loaded = regard.load(folder).predictor_
    dev = DevMetric(loaded)
    assert dev.name == loaded.task.metric and dev.lost(loaded.engine) == 0
    other = random_model(tmp_path / "other", KINDS["post"])
    lost = dev.lost(other.predictor_.engine)
    values = [one.evaluate(pairs)[dev.name] for one in (regard.load(folder), other)]
    assert lost == pytest.approx(abs(values[0] - values[1])) and lost > 0


def test_torch_runs_what_the_engine_does_not_support(exported: Any, capsys: Any) -> None:
    """Each reason is printed once; captured predictions and constraints are those of torch."""
    model, folder = exported("pre")
    torch_engine = model.predictor_.engine
    engine = FallbackEngine(open_engine(folder), torch_engine)
    request = SearchRequest(pad([[6, 7, EOS]]), torch.tensor([12]))
    constrained = replace(request, constraints=[TokenConstraints(prefix=(8,))])
    capsys.readouterr()  # of the export
    for _ in range(2):
        assert engine.run(Beam(), constrained) == torch_engine.run(Beam(), constrained)
        covering = Beam(coverage_penalty=0.5)
        assert engine.run(covering, request) == torch_engine.run(covering, request)
        with regard.capture(model) as captured:
            engine.run(Beam(), request)
        assert len(captured.calls["decoder.layers.0.cross"])
        engine.run(Beam(), request)
    printed = capsys.readouterr().err.splitlines()
    what = "engine torch runs what ctranslate2 does not support: "
    assert printed == [f"{what}{one}" for one in ("constraints", "this beam search", "capture")]


def test_auto_captures_and_evaluates_like_torch(
    exported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = exported("pre")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    auto = regard.load(model.folder_, engine="auto")
    auto.predictor_.engine.restore_choice(["ctranslate2", None])
    pairs = [("abc", "cba"), ("de", "ed")]
    assert auto.evaluate(pairs) == pytest.approx(model.evaluate(pairs))  # perplexity included
    with regard.capture(auto) as captured:
        assert auto.predict(["abc"]) == model.predict(["abc"])
    assert len(captured.calls["decoder.layers.0.cross"])


@pytest.mark.parametrize("option", ["--ensemble", "--token-scores"])
def test_auto_uses_torch_for_what_only_torch_has(
    option: str, exported: Any, command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = exported("pre")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    more = (option, model.folder_) if option == "--ensemble" else (option, "--json")
    said = command("predict", model.folder_, "abc", "--engine", "auto", *more)
    assert said.code == 0 and f"engine auto: using torch, which {option} needs" in said.err
    assert said.out == command("predict", model.folder_, "abc", *more).out


def test_auto_uses_torch_for_labels(models: Any, capsys: Any) -> None:
    regard.load(models("tag").run, engine="auto")
    assert "engine auto: using torch, the only engine for tag models" in capsys.readouterr().err


def test_auto_selects_for_a_server(
    exported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """On the dev set; without one, torch stays."""
    model, _ = exported("pre")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    monkeypatch.setattr(auto_engine, "OTHERS", ())
    monkeypatch.setattr(auto_engine, "TRIAL_SECONDS", 0.0)
    loaded = engine_choice.load_predictor(model.folder_, "auto")
    engine_choice.select_engine(loaded)
    assert loaded.engine.save_choice() is None
    assert "is not available, or has fewer than 200 examples" in capsys.readouterr().err
    examples = [Example("abc", ("cba",))] * 200
    monkeypatch.setattr(engine_choice.DevMetric, "examples", examples)
    engine_choice.select_engine(loaded)
    assert loaded.engine.save_choice() == ["torch", None]


def _always_faster(run: Any) -> Any:
    """Trials that each seem ten times as fast as the previous one."""
    rates = [0.01]

    def faster(self: Any, engine: Any) -> Any:
        rates[0] *= 10
        return run(self, engine)[0], rates[0]

    return faster
