"""Spans as conlleval reads them, worked out by hand; tags against scikit-learn."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score

from regard.core.errors import UserError
from regard.metrics import (
    HIGHER_IS_BETTER,
    is_span_scheme,
    measure_tags,
    span_table,
    spans,
)
from regard.metrics.label_metrics import micro_f1
from regard.metrics.numbers import WeightedScores, percent
from regard.metrics.spans import span_hits

PEOPLE = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG", "O"]]
GUESSES = [["B-PER", "O", "O", "B-LOC"], ["B-LOC", "B-ORG", "O"]]
TOKENS = [["Jane", "Doe", "in", "Rome"], ["the", "UN", "said"]]


def span_scores(y_pred, y_true):
    """Precision, recall and F1 of all spans together."""
    counts = span_hits(y_pred, y_true).count(np.ones(len(y_true)))
    correct, guessed, true = counts.sum(axis=1)
    shares = {"span_precision": percent(correct, guessed), "span_recall": percent(correct, true)}
    return {"f1": micro_f1(counts)} | shares


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("", set()),
        ("O O", set()),
        ("B-X I-X O", {(0, 2, "X")}),
        ("B-X B-X", {(0, 1, "X"), (1, 2, "X")}),
        ("I-X I-X O I-X", {(0, 2, "X"), (3, 4, "X")}),  # IOB1: no B- at all
        ("O I-X", {(1, 2, "X")}),
        ("B-X I-Y", {(0, 1, "X"), (1, 2, "Y")}),  # a change of type begins a span
        ("I-X B-X I-X", {(0, 1, "X"), (1, 3, "X")}),
        ("S-X S-X", {(0, 1, "X"), (1, 2, "X")}),
        ("B-X I-X E-X O S-Y", {(0, 3, "X"), (4, 5, "Y")}),
        ("B-X L-X U-Y O", {(0, 2, "X"), (2, 3, "Y")}),
        ("E-X E-X", {(0, 1, "X"), (1, 2, "X")}),  # an end without a begin
        ("B-X E-X I-X", {(0, 2, "X"), (2, 3, "X")}),
        ("B-X E-Y", {(0, 1, "X"), (1, 2, "Y")}),
        ("B-X S-X I-X", {(0, 1, "X"), (1, 2, "X"), (2, 3, "X")}),
        ("B-A-B I-A-B", {(0, 2, "A-B")}),  # a type may have dashes
        ("B I O B", {(0, 2, ""), (3, 4, "")}),
        ("NOUN B-X", {(1, 2, "X")}),
    ],
)
def test_spans_by_hand(tags, expected):
    assert spans(tags.split()) == expected


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from("XY")), max_size=6))
def test_any_spans_come_back_from_each_scheme(parts):
    y_true, bio, bioes = set(), [], []
    for gap, length, kind in parts:
        bio += ["O"] * gap
        bioes += ["O"] * gap
        y_true.add((len(bio), len(bio) + length, kind))
        bio += [f"B-{kind}", *[f"I-{kind}"] * (length - 1)]
        middle = [f"I-{kind}"] * (length - 2)
        bioes += [f"S-{kind}"] if length == 1 else [f"B-{kind}", *middle, f"E-{kind}"]
    bilou = [{"E": "L", "S": "U"}.get(tag[0], tag[0]) + tag[1:] for tag in bioes]
    assert spans(bio) == spans(bioes) == spans(bilou) == y_true


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (["O", "B-PER", "I-PER"], True),
        (["O", "I-PER"], True),
        (["U-X", "L-X", "B-X"], True),
        (["S-X"], True),
        (["O", "B", "I"], True),
        (["B", "I"], True),
        (["O"], False),
        ([], False),
        (["NOUN", "VERB", "O"], False),
        (["O", "B-"], False),
        (["O", "B-X", "B"], False),
        (["O", "E-X"], False),
        (["B", "X"], False),
        (["B-X", "PRP-I"], False),
    ],
)
def test_span_schemes_are_told_from_other_tags(tags, expected):
    assert is_span_scheme(tags) is expected


def test_span_scores_by_hand():
    # expected 3 spans, predicted 4 (one truncated, one invented), correct 2: LOC and ORG
    assert span_scores(GUESSES, PEOPLE) == {
        "f1": pytest.approx(100 * 2 * 2 / (3 + 4)),
        "span_precision": 50.0,
        "span_recall": pytest.approx(100 * 2 / 3),
    }
    assert span_scores([["O"]], [["O"]])["f1"] == 0.0


def test_the_example_of_the_shared_task():
    # https://www.clips.uantwerpen.be/conll2000/chunking/output.html counts whole chunks only.
    y_true = [["B-NP", "I-NP", "I-NP", "B-VP", "B-PP", "B-NP"]]
    y_pred = [["B-NP", "I-NP", "B-NP", "B-VP", "B-PP", "I-NP"]]
    # predicted: NP 0-2, NP 2-3, VP, PP, NP 5-6 (without B-); expected: NP 0-3, VP, PP, NP 5-6
    scores = span_scores(y_pred, y_true)
    assert scores["span_precision"] == pytest.approx(100 * 3 / 5)
    assert scores["span_recall"] == pytest.approx(100 * 3 / 4)


def test_span_table_by_hand():
    rows = {row["label"]: row for row in span_table(GUESSES, PEOPLE)}
    assert rows["LOC"] == {"label": "LOC", "count": 1, "predicted": 2} | {
        "precision": 50.0,
        "recall": 100.0,
        "f1": pytest.approx(100 * 2 / 3),
    }
    assert rows["PER"]["f1"] == 0.0 and rows["ORG"]["f1"] == 100.0


def test_tag_scores_by_hand():
    known = {"in", "the", "Rome", "said"}.__contains__
    assert measure_tags(GUESSES, PEOPLE, TOKENS, known).scores() == {
        "accuracy": pytest.approx(100 * 5 / 7),
        "f1": span_scores(GUESSES, PEOPLE)["f1"],
        "oov_accuracy": pytest.approx(100 * 2 / 3),  # Jane and UN right, Doe wrong
        "sentence_accuracy": 0.0,
    }


def test_plain_tags_have_no_spans_and_known_words_no_oov():
    y_true, y_pred = [["DET", "NOUN"], ["VERB"]], [["DET", "VERB"], ["VERB"]]
    scores = measure_tags(y_pred, y_true, [["the", "cat"], ["sat"]], lambda word: True).scores()
    assert scores == {"accuracy": pytest.approx(200 / 3), "sentence_accuracy": 50.0}
    assert set(scores) <= set(HIGHER_IS_BETTER)
    flat = [[tag for tags in side for tag in tags] for side in (y_true, y_pred)]
    assert scores["accuracy"] == pytest.approx(100 * accuracy_score(*flat))


def test_intervals_are_those_of_resampled_sentences():
    generator = np.random.default_rng(0)
    y_true = [["B-X"] if first else ["O"] for first in generator.random(400) < 0.5]
    correct = generator.random(400) < 0.8
    y_pred = [
        tags if hit else ["O" if tags == ["B-X"] else "B-X"]
        for tags, hit in zip(y_true, correct, strict=True)
    ]
    tokens = [["w"] for _ in y_true]
    bounds = measure_tags(y_pred, y_true, tokens, lambda word: False).intervals(seed=1)
    share = correct.mean()
    half = 100 * 1.96 * math.sqrt(share * (1 - share) / 400)
    expected = pytest.approx((100 * share - half, 100 * share + half), abs=0.8)
    assert bounds["accuracy"] == bounds["sentence_accuracy"] == bounds["oov_accuracy"] == expected
    hits = span_hits(y_pred, y_true)
    alone = WeightedScores(lambda times: {"f1": micro_f1(hits.count(times))}, len(y_true))
    assert bounds["f1"] == alone.intervals(seed=1)["f1"]
    low, high = bounds["f1"]
    assert low < span_scores(y_pred, y_true)["f1"] < high


def test_an_oov_word_that_is_not_always_sampled_still_has_an_interval():
    bounds = measure_tags(
        [["A"], ["A"]], [["A"], ["A"]], [["x"], ["y"]], {"x"}.__contains__
    ).intervals()
    assert bounds["oov_accuracy"] == (100.0, 100.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: span_scores([], []), "no examples to score"),
        (lambda: span_table([], []), "no examples to score"),
        (lambda: measure_tags([], [], [], bool).scores(), "no examples to score"),
        (lambda: measure_tags([], [], [], bool).intervals(), "no examples to score"),
        (lambda: span_scores([["O"]], [["O"], ["O"]]), "1 predictions for 2 examples"),
        (lambda: span_scores([["O"], ["O"]], [["O"], ["O", "O"]]), "sentence 2: expected 2 tags"),
        (
            lambda: measure_tags([["A"]], [["A"]], [["x", "y"]], bool).scores(),
            "sentence 1: 2 tokens, but 1 tags",
        ),
        (lambda: measure_tags([["A"]], [["A"]], [], bool).scores(), "tokens of 1 sentences"),
    ],
)
def test_misuse_is_an_error(call, message):
    with pytest.raises(UserError, match=message):
        call()
