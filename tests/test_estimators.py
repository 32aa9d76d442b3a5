"""The Transducer: scikit-learn's conventions, training, saving and loading."""

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import regard
from regard import Transducer, UserError
from regard.metrics import HIGHER_IS_BETTER
from regard.training.log import Display

SMALL = {
    **{f"model.{side}.kind": "recurrent" for side in ("encoder", "decoder")},
    **{f"model.{side}.width": 16 for side in ("encoder", "decoder")},
    "training.batch_tokens": 256,
    "training.lr": 0.02,
}


@pytest.fixture
def pairs(words: list[str]) -> list[tuple[str, str]]:
    return [(word, word[::-1]) for word in words[:60]]


def few_steps(steps: int = 2, **more: Any) -> Transducer:
    return Transducer(steps=steps, settings=SMALL | more.pop("settings", {}), **more)


@pytest.fixture(scope="module")
def fitted(words: list[str]) -> Transducer:
    """Fitted once for all tests here; none may change it."""
    return few_steps(20).fit([(word, word[::-1]) for word in words[:60]])


# scikit-learn's conventions


def test_the_constructor_only_stores() -> None:
    model = Transducer(budget="3m", seed=4, settings={"no.such": "key"}, recipe="nowhere")
    assert model.get_params() == {
        **{"budget": "3m", "steps": None, "epochs": None, "seed": 4, "recipe": "nowhere"},
        **{"settings": {"no.such": "key"}, "out": None, "verbose": False, "rate": None},
    }
    assert repr(model) == (
        "Transducer(budget='3m', seed=4, recipe='nowhere', settings={'no.such': 'key'})"
    )
    assert not [name for name in vars(model) if name.endswith("_")]


def test_parameters_can_be_changed() -> None:
    model = Transducer()
    assert model.set_params(steps=3, seed=2) is model
    assert (model.steps, model.seed) == (3, 2)
    with pytest.raises(UserError, match="unknown parameter 'stepz'; available: budget, steps"):
        model.set_params(stepz=3)


def test_clone_copies_the_parameters_and_not_the_model(fitted: Transducer) -> None:
    copy = clone(fitted)
    assert copy is not fitted and copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "model_")


def test_grid_search(words: list[str]) -> None:
    search = GridSearchCV(
        few_steps(), {"settings": [SMALL, SMALL | {"model.decoder.cross": "dot"}]}, cv=2
    )
    search.fit(words[:40], [word[::-1] for word in words[:40]])
    assert len(search.cv_results_["mean_test_score"]) == 2
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    assert search.best_params_["settings"] in search.param_grid["settings"]
    assert len(search.predict(words[40:44])) == 4


def test_numpy_values_from_a_grid(pairs: list[Any]) -> None:
    """np.arange and np.logspace are how grids are made."""
    values = {"training.lr": np.float64(1e-5), "training.accumulation_steps": np.int64(2)}
    model = Transducer(steps=np.int64(1), settings=SMALL | values).fit(pairs)
    assert model.config_.training.lr == 1e-5 and model.config_.training.accumulation_steps == 2


def test_cross_validation_uses_the_metric_of_the_task(pairs: list[Any]) -> None:
    sources, targets = zip(*pairs, strict=True)
    better = few_steps(settings={"task.metric": "ser"})  # errors: the smaller the better
    scores = cross_val_score(better, list(sources), list(targets), cv=2, error_score="raise")
    assert scores.shape == (2,) and (scores < 0).all()


# fit


def test_fit_returns_itself_and_keeps_the_model(fitted: Transducer, pairs: list[Any]) -> None:
    model = few_steps()
    assert model.fit(pairs) is model
    assert fitted.folder_.is_dir() and (fitted.folder_ / "report.html").exists()
    assert fitted.config_.training.steps == 20
    assert [name for name in vars(fitted) if name.endswith("_")] == ["predictor_"]
    assert all(hasattr(fitted, name) for name in ("config_", "folder_", "model_", "task_"))


def test_pairs_or_sources_and_targets(pairs: list[Any]) -> None:
    sources, targets = zip(*pairs, strict=True)
    one, other = few_steps().fit(pairs), few_steps().fit(list(sources), list(targets))
    third = few_steps().fit(np.array(sources), np.array(targets))
    assert one.predict(sources) == other.predict(sources) == third.predict(sources)


def test_references_as_a_list(pairs: list[Any]) -> None:
    several = [(source, [target, source]) for source, target in pairs]
    flat = [(source, target) for source, targets in several for target in targets]
    one, other = few_steps().fit(several, dev=several[:9]), few_steps().fit(flat, dev=flat[:18])
    sources = [source for source, _ in pairs]
    assert one.predict(sources) == other.predict(sources)
    predictions = other.predict(sources)
    exact = other.evaluate(sources, [[target, "x"] for target in predictions])["exact_match"]
    assert exact == 100  # any of the references is right


def test_a_seed_repeats_the_model(pairs: list[Any]) -> None:
    sources = [source for source, _ in pairs]
    scores = [
        [p.score for p in few_steps(seed=seed).fit(pairs).predict_detailed(sources)]
        for seed in (1, 1, 2)
    ]
    assert scores[0] == scores[1] != scores[2]


def test_settings_of_every_type(pairs: list[Any]) -> None:
    settings = {
        "model.encoder": {"kind": "recurrent", "bidirectional": False, "width": 8},
        "training.patience": None,
        "training.lr": 1e-05,
        "training.optimizer.betas": (0.8, 0.9),
    }
    config = Transducer(steps=1, settings=settings).fit(pairs).config_
    assert config.model.encoder.bidirectional is False
    assert config.training.patience is None and config.training.optimizer.betas == (0.8, 0.9)


def test_own_dev_set_and_folder(pairs: list[Any], tmp_path: Path) -> None:
    model = few_steps(out=str(tmp_path / "run")).fit(pairs, dev=pairs[:7])
    assert model.folder_ == tmp_path / "run"
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert scores["examples"] == 7
    assert scores["scores"] == model.evaluate(pairs[:7])
    with pytest.raises(UserError, match="already contains a run"):
        few_steps(out=str(tmp_path / "run")).fit(pairs)


def test_it_is_quiet_unless_verbose(pairs: list[Any], capfd: pytest.CaptureFixture[str]) -> None:
    few_steps().fit(pairs)
    assert capfd.readouterr() == ("", "")
    few_steps(verbose=True).fit(pairs)
    out, err = capfd.readouterr()
    assert out == "" and "done: 2 steps" in err


def test_ctrl_c_keeps_the_model_and_propagates(
    pairs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search over many fits must stop, not only the fit of the moment."""

    class Impatient(Display):
        def step(self, *_: Any) -> None:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Transducer, "_display", lambda self, training: Impatient())
    model = few_steps(50)
    with pytest.raises(KeyboardInterrupt):
        model.fit(pairs)
    assert len(model.predict(["ab"])) == 1


# predict, evaluate


def test_predict(fitted: Transducer, words: list[str]) -> None:
    predictions = fitted.predict(words)
    assert len(predictions) == len(words) and all(
        isinstance(prediction, str) for prediction in predictions
    )
    assert fitted.predict(tuple(words)) == fitted.predict(np.array(words)) == predictions
    assert fitted.predict([]) == []
    assert [fitted.predict([word])[0] for word in words[:5]] == predictions[:5]
    assert fitted.predict(words[:30], batch_size=7) == predictions[:30]


def test_nbest(fitted: Transducer, words: list[str]) -> None:
    found = fitted.predict(words[:5], nbest=3)
    assert [len(predictions) for predictions in found] == [3] * 5
    assert [predictions[0] for predictions in found] == fitted.predict(words[:5])
    scored = fitted.predict_detailed(words[:5], nbest=3)
    for prediction, predictions in zip(scored, found, strict=True):
        scores = [other.score for other in prediction.nbest]
        assert [other.text for other in prediction.nbest] == predictions
        assert scores == sorted(scores, reverse=True) and prediction.score == scores[0]


def test_beam(fitted: Transducer, words: list[str]) -> None:
    assert fitted.predict(words, beam=1) != fitted.predict(words, beam=8)
    with pytest.raises(UserError, match="beam: Input should be greater than 0, found 0"):
        fitted.predict(words, beam=0)


def test_unknown_tokens_are_named(fitted: Transducer) -> None:
    (prediction,) = fitted.predict_detailed(["a!b?"])
    assert prediction.unknown_tokens == ("!", "?")


def test_evaluate(fitted: Transducer, pairs: list[Any]) -> None:
    scores = fitted.evaluate(pairs)
    assert list(scores) == [n for n in HIGHER_IS_BETTER if n in scores] and len(scores) == 8
    sources, targets = zip(*pairs, strict=True)
    assert fitted.evaluate(sources, targets) == scores
    assert fitted.score(pairs) == fitted.score(sources, targets) == scores["exact_match"]
    right = [a == t for a, t in zip(fitted.predict(sources), targets, strict=True)]
    assert scores["exact_match"] == pytest.approx(100 * np.mean(right))


# save, load


def test_save_and_load(fitted: Transducer, words: list[str], tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    again = regard.load(tmp_path / "model")
    assert again.predict_detailed(words, nbest=2) == fitted.predict_detailed(words, nbest=2)
    with pytest.raises(UserError, match="is not empty"):
        fitted.save(tmp_path / "model")


def test_a_loaded_model_can_be_saved_again(trained: Any, tmp_path: Path) -> None:
    regard.load(trained.run).save(tmp_path / "copy")
    assert regard.load(tmp_path / "copy").predict(["abc"]) == regard.load(trained.run).predict(
        ["abc"]
    )


def test_fitting_again_forgets(pairs: list[Any]) -> None:
    model = few_steps().fit(pairs)
    first = model.folder_
    model.fit([(source.upper(), target.upper()) for source, target in pairs])
    assert model.folder_ != first and not first.exists()
    assert model.predict(["ABC"])[0] == model.predict(["ABC"])[0].upper()


# Misuse


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("predict", ["a"]),
        ("evaluate", [("a", "b")]),
        ("score", [("a", "b")]),
        ("save", "nowhere"),
    ],
)
def test_not_fitted(name: str, given: Any) -> None:
    with pytest.raises(UserError, match=r"not fitted: call fit, or use regard\.load"):
        getattr(Transducer(), name)(given)


def test_one_text_is_not_a_list(fitted: Transducer) -> None:
    with pytest.raises(UserError, match=r"found one text\nhelp: pass \[text\]"):
        fitted.predict("abc")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["abc", "abd"], "example 1: expected a pair .source, target., found 'abc'"),
        ([("a", "b"), ("a", "b", "c")], "example 2: expected a pair"),
        ([("a", "b")], "at least 2 sources are needed"),
        ([("a", ""), ("b", ""), ("c", "")], "no pairs to train on"),
        ([], "0 pairs"),
    ],
)
def test_data_that_cannot_be_used(rows: list[Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        few_steps().fit(rows)


def test_sources_and_targets_of_different_number() -> None:
    with pytest.raises(ValueError):
        few_steps().fit(["a", "b"], ["c"])


def test_settings_are_checked_by_fit(pairs: list[Any]) -> None:
    with pytest.raises(UserError, match="did you mean width"):
        Transducer(settings={"model.encoder.widht": 3}).fit(pairs)
    with pytest.raises(UserError, match="expected a duration"):
        Transducer(budget="soon").fit(pairs)
