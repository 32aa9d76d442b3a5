"""Linear models give the numbers of scikit-learn, by a formula and by steps."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression, LogisticRegression

import regard
from regard.data.corpus.ragged import Ragged
from regard.data.tensors.padded import Batch

N, F = 300, 4
LINEAR = {"model.encoder.kind": "linear"}
STEPS = {  # all examples in each step, and a rate that falls to zero
    "training.optimizer.kind": "adam",
    "training.batch_tokens": N,
    "training.steps": 400,
    "training.lr": 0.1,
    "training.validate_every": 400,
    "training.schedule.kind": "cosine",
}


def inputs(seed: int = 0) -> np.ndarray:
    """(N, F) numbers of very different sizes that depend on each other."""
    draw = np.random.default_rng(seed)
    mixed = draw.normal(size=(N, F)) @ (np.eye(F) + 0.3 * draw.normal(size=(F, F)))
    return mixed * [1.0, 100.0, 0.01, 3.0] + [0.0, 50.0, 1.0, -2.0]


def scores(X: np.ndarray, columns: int) -> np.ndarray:
    """(N, columns) linear in X."""
    draw = np.random.default_rng(1)
    return ((X - X.mean(0)) / X.std(0)) @ draw.normal(size=(F, columns))


def numbers(columns: int) -> tuple[np.ndarray, np.ndarray]:
    """X (N, F), and Y (N, columns) with much noise, around other means."""
    X = inputs()
    noise = np.random.default_rng(2).normal(size=(N, columns))
    return X, (scores(X, columns) + noise) * 20 + 1000


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("settings", [{}, STEPS], ids=["formula", "steps"])
def test_linear_regression(columns: int, settings: dict) -> None:
    X, Y = numbers(columns)
    answers = Y[:, 0] if columns == 1 else Y
    ours = regard.Regressor(settings=LINEAR | settings).fit(X, answers, dev=(X, answers))
    kind = settings.get("training.optimizer.kind", "closed_form")
    assert ours.config_.training.optimizer.kind == kind
    theirs = LinearRegression().fit(X, answers)
    for rows in (X, inputs(7)):
        difference = (ours.predict(rows) - theirs.predict(rows)) / Y.std(0)[:columns].squeeze()
        assert difference.shape == answers.shape and np.abs(difference).max() < 1e-4
    assert ours.score(X, answers) == pytest.approx(
        LinearRegression().fit(X, Y).score(X, Y), abs=1e-5
    )


def test_fewer_examples_than_numbers() -> None:
    """Of the many weights that fit exactly, those of least norm, as the pseudo-inverse gives."""
    draw = np.random.default_rng(3)
    X, y = draw.normal(size=(6, 20)), draw.normal(size=6)
    ours = regard.Regressor(settings=LINEAR).fit(X, y, dev=(X, y))
    np.testing.assert_allclose(ours.predict(X), y, atol=1e-4)
    scaled = (X - X.mean(0)) / X.std(0)
    new = draw.normal(size=(5, 20))
    weights = np.linalg.pinv(np.hstack([scaled, np.ones((6, 1))])) @ ((y - y.mean()) / y.std())
    rows = np.hstack([(new - X.mean(0)) / X.std(0), np.ones((5, 1))])
    expected = rows @ weights * y.std() + y.mean()
    np.testing.assert_allclose(ours.predict(new), expected, atol=1e-4 * y.std())


def test_a_number_that_never_changes() -> None:
    X, Y = numbers(1)
    wide = np.hstack([X, np.full((N, 1), 7.0), X[:, :1]])  # a constant, and a number twice
    ours = regard.Regressor(settings=LINEAR).fit(wide, Y[:, 0], dev=(wide, Y[:, 0]))
    expected = LinearRegression().fit(X, Y[:, 0]).predict(X)
    assert np.abs(ours.predict(wide) - expected).max() < 1e-4 * Y.std()


@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_regression(classes: int) -> None:
    """On classes that no line separates; without the temperature that is fitted afterwards."""
    X = inputs()
    noise = np.random.default_rng(2).gumbel(size=(N, classes))
    y = np.array(["no", "yes", "maybe"])[(scores(X, classes) + noise).argmax(1)]
    scaled = (X - X.mean(0)) / X.std(0)
    theirs = LogisticRegression(C=np.inf, max_iter=10_000, tol=1e-9).fit(scaled, y)
    assert theirs.score(scaled, y) < 0.95

    ours = regard.Classifier(settings=LINEAR | STEPS).fit(X, y, dev=(X, y))
    assert ours.task_.temperature == pytest.approx(1.0, abs=0.01)  # it is the best on this part
    ours.task_.temperature = 1.0
    assert list(ours.classes_) == list(theirs.classes_)
    for rows in (X, inputs(7)):
        expected = theirs.predict_proba((rows - X.mean(0)) / X.std(0))
        assert np.abs(ours.predict_proba(rows) - expected).max() < 1e-3
    assert ours.score(X, y) == pytest.approx(theirs.score(scaled, y), abs=1e-9)


def test_multi_label_is_one_logistic_regression_per_label() -> None:
    X = inputs()
    chosen = scores(X, 2) + np.random.default_rng(2).logistic(size=(N, 2)) > 0
    y = [[name for name, there in zip("ab", row, strict=True) if there] for row in chosen]
    ours = regard.Classifier(settings=LINEAR | STEPS).fit(X, y, dev=(X, y))
    ours.task_.temperature = 1.0
    scaled = (X - X.mean(0)) / X.std(0)
    for column in range(2):
        theirs = LogisticRegression(C=np.inf, max_iter=10_000, tol=1e-9)
        expected = theirs.fit(scaled, chosen[:, column]).predict_proba(scaled)[:, 1]
        assert np.abs(ours.predict_proba(X)[:, column] - expected).max() < 1e-3


def test_a_linear_model_is_linear() -> None:
    """Scores of a weighted mean of two vectors are the weighted mean of their scores."""
    X, Y = numbers(2)
    ours = regard.Regressor(settings=LINEAR).fit(X, Y, dev=(X, Y))
    one, two = torch.randn(2, 5, F).numpy()
    with torch.no_grad():
        scores_of = [
            ours.model_(Batch(Ragged.from_arrays(list(rows[:, None])).all())).logits
            for rows in (one, two, 0.3 * one + 0.7 * two)
        ]
    torch.testing.assert_close(0.3 * scores_of[0] + 0.7 * scores_of[1], scores_of[2])
