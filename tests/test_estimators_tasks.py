"""Tagger, Classifier, Regressor and LanguageModel: scikit-learn's conventions and their own."""

from itertools import chain
from pathlib import Path
from typing import Any

import corpora
import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import regard
from regard import Classifier, LanguageModel, Regressor, Tagger, UserError
from regard.data.reading.read import Pair, split_dev
from regard.estimators import Estimator

SMALL = {"model.encoder.width": 16, "training.lr": 0.01, "training.validate_every": 999}
KINDS = (Tagger, Classifier, Regressor, LanguageModel)
TEXTS, LABELS = map(list, zip(*corpora.labeled(120), strict=True))
VECTORS, NUMBERS = map(list, zip(*corpora.vectors(120), strict=True))
WORDS = [[word for word, _ in sentence] for sentence in corpora.tagged(60)]
TAGS = [[tag for _, tag in sentence] for sentence in corpora.tagged(60)]
RUNNING = corpora.running(60)


def classifier(steps: int = 40, **settings: Any) -> Classifier:
    return Classifier(steps=steps, settings=SMALL | settings)


@pytest.fixture(scope="module")
def fitted() -> dict[type[Estimator], Estimator]:
    """Fitted once for all tests here; none may change them."""
    decoder = {"model.decoder.width": 32, "training.lr": 0.01, "task.context_length": 16}
    return {
        Tagger: Tagger(steps=30, settings=SMALL | {"training.lr": 0.02}).fit(WORDS, TAGS),
        Classifier: classifier().fit(TEXTS, LABELS),
        Regressor: Regressor(steps=100, settings=SMALL).fit(VECTORS, NUMBERS),
        LanguageModel: LanguageModel(steps=40, settings=decoder | {"search.max_length": 20}).fit(
            RUNNING
        ),
    }


EVALUATION_DATA: dict[type[Estimator], Any] = {
    Tagger: (WORDS[:9], TAGS[:9]),
    Classifier: (TEXTS[:9], LABELS[:9]),
    Regressor: (VECTORS[:9], NUMBERS[:9]),
    LanguageModel: (RUNNING.splitlines()[:9],),
}


# for all of them


@pytest.mark.parametrize("kind", KINDS)
def test_the_constructor_only_stores(kind: type[Estimator]) -> None:
    model = kind(budget="3m", settings={"no.such": "key"}, recipe="nowhere")
    assert model.get_params()["settings"] == {"no.such": "key"}
    assert not [name for name in vars(model) if name.endswith("_")]
    assert repr(model).startswith(f"{kind.__name__}(budget='3m'")


@pytest.mark.parametrize("kind", KINDS)
def test_save_load_and_clone(kind: type[Estimator], fitted: Any, tmp_path: Path) -> None:
    model, data = fitted[kind], EVALUATION_DATA[kind]
    model.save(tmp_path / "model")
    again = regard.load(tmp_path / "model")
    assert type(again) is kind
    assert list(again.predict(data[0])) == list(model.predict(data[0]))
    assert again.evaluate(*data) == model.evaluate(*data)
    assert again.score(*data) == model.score(*data)
    copy = clone(model)
    assert copy.get_params() == model.get_params() and not hasattr(copy, "model_")


@pytest.mark.parametrize("kind", KINDS)
def test_not_fitted_and_one_text_alone(kind: type[Estimator], fitted: Any) -> None:
    with pytest.raises(UserError, match="not fitted"):
        kind().predict(["a"])
    with pytest.raises(UserError, match=r"pass \[text\]"):
        fitted[kind].predict("a text")


@pytest.mark.parametrize("kind", KINDS)
def test_batches_and_empty_input(kind: type[Estimator], fitted: Any) -> None:
    model, data = fitted[kind], EVALUATION_DATA[kind][0]
    parts, complete = model.predict(data, batch_size=2), model.predict(data)
    assert list(parts) == (
        list(complete) if kind is not Regressor else pytest.approx(complete, rel=1e-4)
    )
    assert len(model.predict([])) == 0


def test_scores_are_those_of_scikit_learn(fitted: Any) -> None:
    labels = fitted[Classifier].predict(TEXTS)
    assert fitted[Classifier].score(TEXTS, LABELS) == np.mean(labels == np.array(LABELS))
    data, expected = fitted[Regressor].predict(VECTORS), np.array(NUMBERS)
    r2 = 1 - ((expected - data) ** 2).sum() / ((expected - expected.mean()) ** 2).sum()
    assert fitted[Regressor].score(VECTORS, NUMBERS) == pytest.approx(r2) and r2 > 0.8
    tags = [tag for row in fitted[Tagger].predict(WORDS) for tag in row]
    right = np.mean([a == b for a, b in zip(tags, chain.from_iterable(TAGS), strict=True)])
    assert fitted[Tagger].score(WORDS, TAGS) == pytest.approx(right) and right > 0.8


def test_cross_validation_and_grid_search() -> None:
    """Texts, vectors and sentences work with scikit-learn's splitters."""
    assert is_classifier(Classifier()) and is_regressor(Regressor())
    scores = cross_val_score(classifier(), TEXTS, LABELS, cv=2, error_score="raise")
    assert scores.min() > 0.6
    numbers = cross_val_score(
        Regressor(steps=80, settings=SMALL), np.array(VECTORS), np.array(NUMBERS), cv=2
    )
    assert numbers.min() > 0.5
    search = GridSearchCV(classifier(), {"steps": [1, 40]}, cv=2, error_score="raise")
    assert search.fit(TEXTS, LABELS).best_params_ == {"steps": 40}
    tagger = Tagger(settings=SMALL | {"training.lr": 0.02})
    search = GridSearchCV(tagger, {"steps": [1, 25]}, cv=2, error_score="raise").fit(WORDS, TAGS)
    assert search.best_params_ == {"steps": 25} and search.best_score_ > 0.6


def test_a_pipeline_with_a_scaler() -> None:
    signs = [int(number > 0) for number in NUMBERS]
    pipeline = make_pipeline(StandardScaler(), classifier(60)).fit(VECTORS, signs)
    assert isinstance(pipeline, Pipeline) and pipeline.score(VECTORS, signs) > 0.8
    assert pipeline.predict_proba(VECTORS).shape == (120, 2)
    assert list(pipeline.classes_) == [0, 1]
    found = cross_val_predict(pipeline, np.array(VECTORS), np.array(signs), cv=2)
    assert set(found) <= {0, 1}
    line = make_pipeline(StandardScaler(), Regressor(settings={"model.encoder.kind": "linear"}))
    assert line.fit(VECTORS, NUMBERS).score(VECTORS, NUMBERS) == pytest.approx(1, abs=1e-6)


# Classifier


@pytest.mark.parametrize(
    "labels",
    [[kind(n % 12) for n in range(120)] for kind in (int, bool, float)],
    ids=["int", "bool", "float"],
)
def test_labels_keep_their_type_and_order(labels: list[Any], tmp_path: Path) -> None:
    model = classifier(3).fit(VECTORS, labels)
    assert model.classes_.tolist() == sorted(set(labels))  # 2 before 10
    assert model.classes_.dtype == model.predict(VECTORS).dtype == np.array(labels).dtype
    best = model.classes_[model.predict_proba(VECTORS).argmax(1)]
    assert np.array_equal(best, model.predict(VECTORS))
    model.save(tmp_path / "model")
    again = regard.load(tmp_path / "model")
    assert np.array_equal(again.predict(VECTORS), model.predict(VECTORS))
    assert again.classes_.tolist() == model.classes_.tolist()


def test_probabilities_follow_the_classes(fitted: Any) -> None:
    model = fitted[Classifier]
    assert model.classes_.tolist() == ["bad", "even", "good"]
    shares = model.predict_proba(TEXTS)
    assert shares.shape == (120, 3) and shares.sum(1) == pytest.approx(1, abs=1e-5)
    assert np.array_equal(model.classes_[shares.argmax(1)], model.predict(TEXTS))
    assert model.predict_proba([]).shape == (0, 3)


def test_multi_label(tmp_path: Path) -> None:
    pairs = zip(TEXTS, LABELS, strict=True)
    expected = [{label, "dog"} if "dog" in text else [label] for text, label in pairs]
    model = classifier(150).fit(TEXTS, expected)
    found = model.predict(TEXTS)
    assert {type(row) for row in found} == {list} and any("dog" in row for row in found)
    right = np.mean([set(a) == set(b) for a, b in zip(found, expected, strict=True)])
    assert model.score(TEXTS, expected) == pytest.approx(right) and right > 0.5
    shares = model.predict_proba(TEXTS)
    assert model.classes_.tolist() == ["bad", "dog", "even", "good"]
    assert shares.shape == (120, 4) and not np.allclose(shares.sum(1), 1)


def test_class_weight() -> None:
    """For uninformative texts, the rare class is more probable with balanced weights."""
    few = [number % 10 == 0 for number in range(120)]
    texts = ["same text"] * 120
    plain, balanced = (
        classifier(30, **{"task.class_weight": weights}).fit(texts, few, dev=(texts, few))
        for weights in ("none", "balanced")
    )
    rare = [float(model.predict_proba(["same text"])[0, 1]) for model in (plain, balanced)]
    assert plain.config_.task.class_weight == "none" and rare[0] != rare[1]
    raw = [model.predictor_.find(["same text"])[0] for model in (plain, balanced)]
    assert raw[1][1] - raw[1][0] > raw[0][1] - raw[0][0] + 0.5


def test_unlabeled_examples() -> None:
    more = [text for text, _ in corpora.labeled(40, seed=6)]
    steps, few = {"task.pseudo_label_threshold": 0.5}, slice(30)
    model = classifier(**steps).fit(TEXTS[few], LABELS[few], unlabeled=more)
    assert model.score(TEXTS, LABELS) > 0.5
    alone = classifier(**steps).fit(TEXTS[few], LABELS[few])
    assert not np.array_equal(model.predict_proba(TEXTS), alone.predict_proba(TEXTS))
    tagger = Tagger(steps=3, settings=SMALL | {"task.pseudo_label_threshold": 0.01})
    assert tagger.fit(WORDS, TAGS, unlabeled=WORDS[:5]).predict(WORDS)
    with pytest.raises(UserError, match="only supported for tasks tag and classify"):
        Regressor(steps=1).fit(VECTORS, NUMBERS, unlabeled=VECTORS)


# Regressor, LanguageModel


def test_several_numbers() -> None:
    both = [[number, -2 * number] for number in NUMBERS]
    model = Regressor(settings={"model.encoder.kind": "linear"}).fit(VECTORS, both)
    assert model.predict(VECTORS) == pytest.approx(np.array(both), abs=1e-3)


def test_generate_streams_what_predict_returns(fitted: Any) -> None:
    model = fitted[LanguageModel]
    for search in ({}, {"seed": 3}, {"temperature": 0}, {"max_length": 5, "top_k": 4}):
        pieces = list(model.generate("Anna", **search))
        assert ["Anna" + "".join(pieces)] == model.predict(["Anna"], **search)
        assert len(pieces) <= search.get("max_length", 20)
    three = model.predict(["Anna"], nbest=3)[0]
    assert three == ["Anna" + "".join(model.generate("Anna", row)) for row in range(3)]
    assert "".join(model.generate()) == model.predict([""])[0]


def test_log_likelihoods_of_texts(fitted: Any) -> None:
    model = fitted[LanguageModel]
    likely, noise = model.log_likelihoods(
        ["Anna sees the dog in Ulm.\n", "gUnAd eht\n sees ni mlgon Uo"]
    )
    assert likely["perplexity"] < noise["perplexity"]
    complete = model.evaluate("Anna sees the dog in Ulm.\n")
    assert complete == pytest.approx({name: likely[name] for name in complete})
    assert model.score("Anna sees the dog in Ulm.\n") == -complete["perplexity"]


def test_a_rare_label_is_not_held_out() -> None:
    """The only text of a label stays in train, although its hash would put it in the dev set."""
    texts = [f"text {number}" for number in range(40)]
    _, held = split_dev([Pair(text, ("usual",), 1) for text in texts])
    labels = ["rare" if t == held[0].source else "ab"[n % 2] for n, t in enumerate(texts)]
    model = Classifier(steps=1, settings={"model.encoder.width": 8}).fit(texts, labels)
    assert set(model.classes_) == {"a", "b", "rare"}


def test_a_regressor_keeps_the_standardization_of_its_pretrained_model() -> None:
    """Before its first update it predicts as the pretrained model does."""
    linear = {"model.encoder.kind": "linear"}
    first = Regressor(settings=linear).fit(VECTORS, NUMBERS)
    still = {**linear, "training.optimizer.kind": "adam", "training.lr": 1e-9}
    other = [10 * number + 5 for number in NUMBERS]
    second = Regressor(steps=1, settings=still).fit(VECTORS, other, init_from=first)
    assert second.predict(VECTORS) == pytest.approx(first.predict(VECTORS), rel=1e-4)
