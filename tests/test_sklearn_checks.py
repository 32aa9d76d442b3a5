"""scikit-learn's own checks of estimators, on vectors."""

import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from regard import Classifier, Regressor, Tagger, UserError
from regard.estimators.sklearn_classes import NotFitted
from regard.metrics.numbers import WeightedScores

FEW = {"model.encoder.width": 16, "training.lr": 0.05, "training.validate_every": 999}
# scikit-learn itself skips these: the first needs an environment variable, the others pandas
SKIPPED = {
    "check_array_api_input",
    "check_classifier_data_not_an_array",
    "check_regressor_data_not_an_array",
}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Omit what is not checked here: most bootstrap samples, and waiting for the disk."""
    monkeypatch.setattr(WeightedScores.intervals, "__defaults__", (5, 0))
    monkeypatch.setattr(os, "fsync", lambda file: None)


@pytest.mark.usefixtures("quick")
@pytest.mark.filterwarnings("ignore:Estimator .* does not inherit from")
@pytest.mark.parametrize("kind", [Regressor, Classifier])
def test_check_estimator(kind: Any) -> None:
    checks = check_estimator(kind(steps=20, settings=FEW), on_fail=None, on_skip=None)
    others = {c["check_name"]: c["exception"] for c in checks if c["status"] != "passed"}
    assert {name: error for name, error in others.items() if name not in SKIPPED} == {}
    assert all(c["status"] != "failed" for c in checks) and len(checks) >= 50


def test_not_fitted_is_an_error_of_scikit_learn_too() -> None:
    with pytest.raises(NotFittedError, match="this Tagger is not fitted") as found:
        Tagger().predict(["a b"])
    assert isinstance(found.value, UserError) and isinstance(found.value, AttributeError)
    again = pickle.loads(pickle.dumps(found.value))  # as joblib sends it
    assert isinstance(again, NotFittedError) and str(again) == str(found.value)
    assert not hasattr(Tagger(), "model_") and not hasattr(Regressor(), "n_features_in_")


def test_regard_does_not_import_scikit_learn() -> None:
    program = (
        "import sys, regard\n"
        "try: regard.Tagger().predict(['a'])\n"
        "except regard.UserError as error: print(type(error).__name__)\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('sklearn', 'pandas')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split("\n")[:2] == [NotFitted.__name__, "[]"], done.stderr


@pytest.mark.parametrize("kind", [Regressor, Classifier])
def test_batches_do_not_change_predictions(kind: Any) -> None:
    """Not even by rounding: a batch of one would take another matrix kernel."""
    vectors = np.random.default_rng(0).normal(size=(70, 30))
    model = kind(steps=20, settings=FEW | {"model.encoder.width": 100})
    model.fit(vectors, (vectors[:, 0] > 0).astype(int))
    predict = model.predict if kind is Regressor else model.predict_proba
    expected = predict(vectors)
    for size in (1, 2, 7, 64):
        assert np.array_equal(predict(vectors, batch_size=size), expected)
    assert np.array_equal(np.concatenate([predict(row[None]) for row in vectors]), expected)
    order = np.random.default_rng(1).permutation(len(vectors))
    assert np.array_equal(predict(vectors[order]), expected[order])
