"""Metrics for labels against scikit-learn and numbers worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from sklearn import metrics as sk

from regard.core.errors import UserError
from regard.metrics import (
    HIGHER_IS_BETTER,
    calibration_error,
    class_table,
    confusion,
    confusion_lines,
    fit_temperature,
    fit_temperature_multilabel,
    measure_labels,
    reliability,
)

NAMES = list("abcdefg")
one = st.tuples(st.sampled_from(NAMES))
some = st.sets(st.sampled_from(NAMES)).map(tuple)


def singles(*names: str) -> list[tuple[str, ...]]:
    return [(name,) for name in names]


def indicators(examples: list[tuple[str, ...]], labels: list[str]) -> np.ndarray:
    return np.array([[label in names for label in labels] for names in examples], int)


def draw(seed: int, count: int = 300) -> tuple[list, list]:
    generator = np.random.default_rng(seed)
    y_true = generator.choice(NAMES, count, p=[0.4, 0.2, 0.15, 0.1, 0.05, 0.05, 0.05])
    y_pred = np.where(generator.random(count) < 0.7, y_true, generator.choice(NAMES, count))
    return singles(*y_pred.tolist()), singles(*y_true.tolist())


@given(st.lists(st.tuples(one, one), min_size=1, max_size=30))
def test_single_label_scores_match_scikit_learn(pairs):
    y_pred, y_true = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    flat = [name for (name,) in y_true], [name for (name,) in y_pred]
    scores = measure_labels(y_pred, y_true).scores()
    assert scores == {
        "accuracy": pytest.approx(100 * sk.accuracy_score(*flat)),
        "macro_f1": pytest.approx(100 * sk.f1_score(*flat, average="macro", zero_division=0)),
    }


@given(st.lists(st.tuples(some, some), min_size=1, max_size=30))
def test_multilabel_scores_match_scikit_learn(pairs):
    y_pred, y_true = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    tables = indicators(y_true, NAMES), indicators(y_pred, NAMES)
    occur = np.flatnonzero((tables[0] + tables[1]).any(axis=0))
    micro, macro = (
        100 * sk.f1_score(*tables, labels=occur, average=average, zero_division=0)
        if len(occur)
        else 0.0
        for average in ("micro", "macro")
    )
    assert measure_labels(y_pred, y_true, multilabel=True).scores() == {
        "f1": pytest.approx(micro),
        "macro_f1": pytest.approx(macro),
        "subset_accuracy": pytest.approx(100 * sk.accuracy_score(*tables)),
    }


def test_multilabel_is_detected_and_their_order_does_not_matter():
    scores = measure_labels([("a", "b"), ()], [("b", "a"), ("a",)]).scores()
    # a: 1 hit, 1 predicted, 2 expected; b: 1, 1, 1. Together 2 hits, 2 predicted, 3 expected.
    assert scores["f1"] == pytest.approx(100 * 4 / 5)
    assert scores["macro_f1"] == pytest.approx(100 * (2 / 3 + 1) / 2)
    assert scores["subset_accuracy"] == 50.0
    assert set(scores) <= set(HIGHER_IS_BETTER)


def test_class_table_equals_scikit_learns_report():
    y_pred, y_true = draw(0)
    flat = [name for (name,) in y_true], [name for (name,) in y_pred]
    report = sk.classification_report(*flat, output_dict=True, zero_division=0)
    table = class_table(y_pred, y_true)
    assert [row["count"] for row in table] == sorted((row["count"] for row in table), reverse=True)
    assert {row["label"] for row in table} == set(flat[0]) | set(flat[1])
    for row in table:
        theirs = report[row["label"]]
        assert row["count"] == theirs["support"]
        assert row["predicted"] == flat[1].count(row["label"])
        assert row["precision"] == pytest.approx(100 * theirs["precision"])
        assert row["recall"] == pytest.approx(100 * theirs["recall"])
        assert row["f1"] == pytest.approx(100 * theirs["f1-score"])


def test_a_label_that_was_never_predicted_or_never_expected_has_a_row():
    rows = {row["label"]: row for row in class_table(singles("x", "a"), singles("a", "a"))}
    assert rows["x"] == {"label": "x", "count": 0, "predicted": 1} | dict.fromkeys(
        ("precision", "recall", "f1"), 0.0
    )
    assert rows["a"]["recall"] == 50.0 and rows["a"]["precision"] == 100.0


def test_interval_of_accuracy_is_the_binomial_one_and_repeats_with_the_seed():
    y_pred, y_true = draw(1, 400)
    share = measure_labels(y_pred, y_true).scores()["accuracy"] / 100
    half = 100 * 1.96 * math.sqrt(share * (1 - share) / 400)
    bounds = measure_labels(y_pred, y_true).intervals(seed=3)
    assert bounds["accuracy"] == pytest.approx((100 * share - half, 100 * share + half), abs=0.8)
    assert bounds == measure_labels(y_pred, y_true).intervals(seed=3)
    assert bounds != measure_labels(y_pred, y_true).intervals(seed=4)


def test_interval_of_macro_f1_is_that_of_resampled_examples():
    y_pred, y_true = (np.array(side)[:, 0] for side in draw(2, 120))
    generator = np.random.default_rng(5)
    places = generator.integers(0, 120, (1000, 120))
    drawn = [sk.f1_score(y_true[row], y_pred[row], average="macro") for row in places]
    bounds = measure_labels(singles(*y_pred), singles(*y_true)).intervals()["macro_f1"]
    assert bounds == pytest.approx(np.percentile(drawn, [2.5, 97.5]) * 100, abs=1.5)


def test_confusion_equals_scikit_learns_with_the_most_frequent_first():
    y_pred, y_true = draw(3)
    table = confusion(y_pred, y_true)
    flat = [name for (name,) in y_true], [name for (name,) in y_pred]
    assert table["rows"] == sk.confusion_matrix(*flat, labels=table["labels"]).tolist()
    counts = [flat[0].count(label) for label in table["labels"]]
    assert counts == sorted(counts, reverse=True)
    assert table["others"] == 0


def test_rare_labels_are_merged():
    y_true = singles("a", "a", "a", "b", "b", "c", "d")
    table = confusion(singles("a", "b", "d", "b", "e", "d", "a"), y_true, max_labels=3)
    assert table == {
        "labels": ["a", "b", "others"],
        "rows": [[1, 1, 1], [0, 1, 1], [1, 0, 1]],
        "others": 3,
    }


def test_calibration_error_by_hand():
    # Bins of a tenth: (0.8, 0.9] has 0.85 and 0.9, one right; (0.5, 0.6] has 0.6, right.
    confidences, correct = [0.85, 0.9, 0.6], [True, False, True]
    expected = 100 * (2 / 3 * abs(0.5 - 0.875) + 1 / 3 * abs(1 - 0.6))
    assert calibration_error(confidences, correct, num_bins=10) == pytest.approx(expected)
    rows = reliability(confidences, correct)
    assert [(row["low"], row["high"], row["count"]) for row in rows] == [(50, 60, 1), (80, 90, 2)]
    assert rows[1]["confidence"] == pytest.approx(87.5) and rows[1]["accuracy"] == 50.0


def test_calibrated_confidence_has_little_error_and_the_bounds_count():
    generator = np.random.default_rng(0)
    shares = generator.random(200_000)
    assert calibration_error(shares, generator.random(200_000) < shares) < 1.0
    assert calibration_error([0.0, 1.0], [True, False]) == 100.0
    assert calibration_error([0.0, 1.0], [False, True]) == 0.0


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
def test_the_temperature_that_made_the_labels_is_found(temperature):
    generator = np.random.default_rng(7)
    logits = generator.normal(0, 2, (20_000, 5))
    noise = generator.gumbel(size=logits.shape)
    labels = (logits / temperature + noise).argmax(axis=1)  # drawn from softmax(logits / T)
    assert fit_temperature(logits, labels) == pytest.approx(temperature, rel=0.05)
    logistic = generator.logistic(size=logits.shape)
    several = (logits / temperature + logistic > 0).astype(int)
    assert fit_temperature_multilabel(logits, several) == pytest.approx(temperature, rel=0.05)


def test_no_other_temperature_has_a_smaller_loss():
    generator = np.random.default_rng(8)
    logits, labels = generator.normal(0, 3, (200, 4)), generator.integers(0, 4, 200)
    labels[:120] = logits[:120].argmax(axis=1)

    def loss(t: float) -> float:
        weights = np.exp(logits / t)
        return sk.log_loss(labels, weights / weights.sum(axis=1, keepdims=True))

    best = fit_temperature(logits, labels)
    assert all(loss(best) <= loss(best * factor) for factor in (0.8, 0.99, 1.01, 1.25))


def test_the_temperature_stays_in_its_range():
    logits = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert fit_temperature(logits, np.array([0, 1])) == pytest.approx(0.05)
    assert fit_temperature(logits, np.array([1, 0])) == pytest.approx(20.0)
    assert fit_temperature(1000 * logits, np.array([1, 0])) == pytest.approx(20.0)


def test_confusion_in_words():
    lines = confusion_lines(confusion(singles("b", "a", "a"), singles("a", "a", "b")))
    assert lines[0] == "rows: expected, columns: predicted"
    assert [line.split() for line in lines[1:]] == [
        ["a", "b"],
        ["a", "1", "1"],
        ["b", "1", "."],
    ]


def test_long_labels_get_letters_and_many_a_list():
    def table(count: int, length: int) -> dict:
        names = [f"{i:02d}" + "x" * length for i in range(count)]
        return confusion(singles(*names[1:], names[0]), singles(*names))

    lettered = confusion_lines(table(12, 20))
    assert lettered[1].split() == list("abcdefghijkl")
    assert lettered[2].startswith("a = 00xxx")
    listed = confusion_lines({"labels": [f"n{i}" for i in range(60)], "rows": np.eye(60)[::-1]})
    assert "-> " in listed[1] and len(listed) == 16 and "15 of 60" in listed[0]
    assert confusion_lines(table(24, 2))[1].split() == list("abcdefghijklmnopqrstuvwx")
    joined = confusion_lines(table(40, 60))
    assert "without the 11 rarest labels" in joined[0] and "others" not in "".join(joined)
    for shape in [(2, 1), (12, 20), (25, 30), (30, 3), (30, 80)]:
        assert all(cell_len(line) <= 100 for line in confusion_lines(table(*shape)))
    assert any(
        "others (3)" in line
        for line in confusion_lines(confusion(singles(*"abcde"), singles(*"abcde"), max_labels=3))
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: measure_labels([], []).scores(), "no examples to score"),
        (lambda: measure_labels([], []).intervals(), "no examples to score"),
        (lambda: class_table([], []), "no examples to score"),
        (lambda: confusion([], []), "no examples to score"),
        (lambda: calibration_error([], []), "no examples to score"),
        (lambda: fit_temperature(np.zeros((0, 2)), np.zeros(0, int)), "no examples to score"),
        (
            lambda: measure_labels([("a",)], [("a",), ("b",)]).scores(),
            "1 predictions for 2 examples",
        ),
        (lambda: confusion([("a", "b")], [("a",)]), "exactly one label"),
    ],
)
def test_misuse_is_an_error(call, message):
    with pytest.raises(UserError, match=message):
        call()
