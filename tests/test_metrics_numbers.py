"""Metrics for numbers against scikit-learn, and the edges where it warns; tables as text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from sklearn import metrics as sk

from regard.core.errors import UserError
from regard.metrics import (
    HIGHER_IS_BETTER,
    class_table,
    measure_numbers,
    number_table,
    table_lines,
)

number = st.integers(-50, 50).map(lambda value: value / 4)


def draw(seed: int, count: int = 200, targets: int = 3) -> tuple[list, list]:
    generator = np.random.default_rng(seed)
    y_true = generator.normal(5, [1, 20, 300][:targets], (count, targets))
    y_pred = y_true + generator.normal(0, [0.5, 30, 90][:targets], (count, targets))
    return [tuple(row) for row in y_pred.tolist()], [tuple(row) for row in y_true.tolist()]


@given(
    st.integers(1, 3).flatmap(
        lambda n: st.lists(st.tuples(*[st.tuples(*[number] * n)] * 2), min_size=2, max_size=20)
    )
)
def test_scores_are_scikit_learns(pairs):
    y_pred, y_true = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    assert measure_numbers(y_pred, y_true).scores() == {
        "r2": pytest.approx(sk.r2_score(y_true, y_pred)),
        "rmse": pytest.approx(sk.root_mean_squared_error(y_true, y_pred)),
        "mae": pytest.approx(sk.mean_absolute_error(y_true, y_pred)),
    }


def test_each_target_has_a_row():
    y_pred, y_true = draw(0)
    table = number_table(y_pred, y_true, ["a", "b", "c"])
    raw = sk.r2_score(y_true, y_pred, multioutput="raw_values")
    assert [row["target"] for row in table] == ["a", "b", "c"]
    assert [row["r2"] for row in table] == pytest.approx(raw.tolist())
    scores = measure_numbers(y_pred, y_true).scores()
    assert set(scores) <= set(HIGHER_IS_BETTER)
    for name, value in scores.items():
        assert np.mean([row[name] for row in table]) == pytest.approx(value)
    assert table_lines(table)[0].split() == ["target", "r2", "rmse", "mae"]


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 + 0.1])
def test_a_target_that_never_changes(value):
    y_true = [(value,)] * 7
    assert measure_numbers(y_true, y_true).scores()["r2"] == 1.0
    assert measure_numbers([(value + 1,)] * 7, y_true).scores()["r2"] == 0.0


def test_numbers_far_from_zero_keep_their_digits():
    y_pred, y_true = draw(1, targets=1)
    far = [[(x + 1e9,) for (x,) in side] for side in (y_pred, y_true)]
    assert measure_numbers(*far).scores()["r2"] == pytest.approx(
        measure_numbers(y_pred, y_true).scores()["r2"]
    )


def test_intervals_are_those_of_resampled_examples():
    y_pred, y_true = draw(2, 150)
    arrays, generator, resampled = np.array([y_pred, y_true]), np.random.default_rng(9), []
    for _ in range(1000):
        pred, true = arrays[:, generator.integers(0, 150, 150)]
        resampled.append((sk.r2_score(true, pred), sk.mean_absolute_error(true, pred)))
    expected = np.percentile(resampled, [2.5, 97.5], axis=0)
    bounds = measure_numbers(y_pred, y_true).intervals()
    assert bounds["r2"] == pytest.approx(expected[:, 0], abs=0.06)
    assert bounds["mae"] == pytest.approx(expected[:, 1], rel=0.03)
    assert bounds == measure_numbers(y_pred, y_true).intervals(seed=0)
    assert set(bounds) == {"r2", "rmse", "mae"}


def test_few_examples_have_finite_bounds():
    bounds = measure_numbers([(1.0,), (2.0,)], [(1.0,), (3.0,)]).intervals(samples=50)
    assert all(np.isfinite(bound) for pair in bounds.values() for bound in pair)


def test_tables_are_aligned():
    lines = table_lines(
        class_table([("noun",), ("verb",), ("verb",)], [("noun",), ("noun",), ("verb",)])
    )
    assert lines[0].split() == ["label", "count", "predicted", "precision", "recall", "f1"]
    assert lines[1].split() == ["noun", "2", "1", "100.0", "50.0", "66.7"]
    assert len({len(line) for line in lines}) == 1
    wide = table_lines([{"label": "名詞", "count": 1}, {"label": "x", "count": 2000}])
    assert len({cell_len(line) for line in wide}) == 1
    assert table_lines([]) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: measure_numbers([], []).scores(), "no examples to score"),
        (lambda: measure_numbers([], []).intervals(), "no examples to score"),
        (lambda: number_table([], [], []), "no examples to score"),
        (lambda: measure_numbers([(1.0,)], []).scores(), "1 predictions for 0 examples"),
        (
            lambda: measure_numbers([(1.0,), (2.0,)], [(1.0,), (2.0, 3.0)]).scores(),
            "example 2: expected 1 numbers",
        ),
        (lambda: number_table([(1.0,)], [(1.0,)], ["a", "b"]), "expected 1 target names, found 2"),
    ],
)
def test_misuse_is_an_error(call, message):
    with pytest.raises(UserError, match=message):
        call()
