"""Metrics against numbers worked out by hand and against sacrebleu."""

import math
import random
from functools import cache

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from regard.core.errors import UserError
from regard.metrics import HIGHER_IS_BETTER, edit_distance, intervals, score, short_bleu, signatures
from regard.metrics.metric_names import usual_metrics

SENTENCES = [
    ("the cat sat on the mat .", ["the cat sat on a mat .", "a cat was sitting on the mat ."]),
    ("Two dogs run.", ["Two dogs are running through the grass.", "Two dogs run fast."]),
    ("A man, a plan, a canal", ["A man, a plan, a canal: Panama!"]),
    ("nothing in common here at all", ["something quite different"]),
    ("", ["an answer was expected"]),
]
HYPOTHESES = [hypothesis for hypothesis, _ in SENTENCES]
REFERENCES = [references for _, references in SENTENCES]


def naive_distance(first: str, second: str) -> int:
    """Levenshtein's recursion, as in a textbook."""

    @cache
    def distance(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        substitution = distance(i - 1, j - 1) + (first[i - 1] != second[j - 1])
        return min(substitution, distance(i - 1, j) + 1, distance(i, j - 1) + 1)

    return distance(len(first), len(second))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("kitten", "sitting", 3),
        ("saturday", "sunday", 3),
        ("", "abc", 3),
        ("abc", "", 3),
        ("", "", 0),
        ("same", "same", 0),
        ("abc", "xyz", 3),
        (["K", "AE1", "T"], ["K", "AH0", "T", "S"], 2),
    ],
)
def test_edit_distance_by_hand(first, second, expected):
    assert edit_distance(first, second) == expected


@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_edit_distance_equals_the_recursion(first, second):
    assert edit_distance(first, second) == naive_distance(first, second)


@given(st.text("ab", min_size=60, max_size=200), st.integers(0, 59))
def test_edit_distance_of_texts_longer_than_a_machine_word(text, place):
    assert edit_distance(text, text[:place] + "x" + text[place:]) == 1
    assert edit_distance(text, text[:place] + "x" + text[place + 1 :]) == 1
    assert edit_distance(text, text[:place] + text[place + 1 :]) == 1


def test_rates_by_hand():
    # tokens: 1 of 3 and 0 of 2 wrong; characters "k a t" / "k e t": 1 of 5 and 0 of 3.
    scores = score(["k a t", "d o"], [["k e t"], ["d o"]], str.split)
    assert scores["exact_match"] == 50.0
    assert scores["ser"] == pytest.approx(100 * 1 / 5)
    assert scores["cer"] == pytest.approx(100 * 1 / 8)
    assert scores["wer"] == pytest.approx(100 * 1 / 5)


def test_the_closest_reference_counts_and_of_ties_the_longest():
    # "ab" is one insertion from "abc", one deletion from "a", two edits from "xy".
    scores = score(["ab"], [["xy", "a", "abc"]], list)
    assert scores["ser"] == scores["cer"] == pytest.approx(100 * 1 / 3)
    assert scores["exact_match"] == 0.0
    assert score(["ab"], [["xy", "ab"]], list)["exact_match"] == 100.0


def test_empty_references_do_not_divide_by_zero():
    assert score([""], [[""]], list)["ser"] == 0.0
    assert score([""], [[""]], list)["short_bleu"] == 100.0
    assert score(["abc"], [[""]], list)["ser"] == 300.0
    assert score(["", "ab"], [["ab"], ["ab"]], list)["ser"] == 50.0


def test_rates_can_exceed_one_hundred():
    assert score(["a b c d"], [["x"]], str.split)["wer"] == 400.0


def test_short_bleu_by_hand():
    # The book's example: label A B C D E F, prediction A B B C D: p1 = 4/5, p2 = 3/4.
    expected = math.exp(1 - 6 / 5) * (4 / 5) ** 0.5 * (3 / 4) ** 0.25
    assert short_bleu("ABBCD", "ABCDEF") == pytest.approx(expected)
    assert short_bleu("ABC", "ABC") == 1.0
    assert short_bleu("A", "A") == 1.0
    assert short_bleu("", "A") == 0.0
    assert short_bleu("XY", "AB") == 0.0
    # Longer than the label: no penalty but p1 = 2/4, p2 = 1/3.
    assert short_bleu("ABAB", "AB") == pytest.approx((2 / 4) ** 0.5 * (1 / 3) ** 0.25)


def test_short_bleu_is_a_mean_over_examples_of_the_best_reference():
    first = math.exp(1 - 6 / 5) * (4 / 5) ** 0.5 * (3 / 4) ** 0.25
    scores = score(["a b b c d", "x"], [["q q", "a b c d e f"], ["x"]], list)
    assert scores["short_bleu"] == pytest.approx(100 * (first + 1) / 2)


def test_short_bleu_counts_tokens_if_all_references_are_single_words():
    expected = math.exp(1 - 6 / 5) * (4 / 5) ** 0.5 * (3 / 4) ** 0.25
    assert score(["abbcd"], [["abcdef"]], list)["short_bleu"] == pytest.approx(100 * expected)


def test_bleu_and_chrf_are_those_of_sacrebleu():
    first = [references[0] for references in REFERENCES]
    scores = score(HYPOTHESES, [[text] for text in first], str.split)
    assert scores["bleu"] == sacrebleu.corpus_bleu(HYPOTHESES, [first]).score
    assert scores["chrf"] == sacrebleu.corpus_chrf(HYPOTHESES, [first]).score


def test_a_varying_number_of_references_is_that_of_sacrebleu():
    second = [references[1] if len(references) > 1 else None for references in REFERENCES]
    streams = [[references[0] for references in REFERENCES], second]
    scores = score(HYPOTHESES, REFERENCES, str.split)
    assert scores["bleu"] == sacrebleu.corpus_bleu(HYPOTHESES, streams).score
    assert scores["chrf"] == sacrebleu.corpus_chrf(HYPOTHESES, streams).score


def test_bleu_is_case_sensitive():
    lower = score(["the cat sat here ."], [["the cat sat here ."]], str.split)
    upper = score(["The Cat Sat here ."], [["the cat sat here ."]], str.split)
    assert lower["bleu"] == pytest.approx(100.0)
    assert upper["bleu"] < lower["bleu"]


def test_signatures_name_the_number_of_references():
    varying = signatures(REFERENCES)
    assert varying["bleu"].startswith("nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert varying["chrf"].startswith("nrefs:var|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")
    assert signatures([["a"], ["b"]])["bleu"].startswith("nrefs:1|")


def test_intervals_of_identical_examples_are_the_score_itself():
    # Every resample of copies of one example has the score of all: also for sacrebleu's.
    hypotheses, references = [HYPOTHESES[0]] * 20, [REFERENCES[0]] * 20
    scores = score(hypotheses, references, str.split)
    bounds = intervals(hypotheses, references, str.split, samples=20)
    assert list(bounds) == list(scores)
    for name, (low, high) in bounds.items():
        assert low == pytest.approx(scores[name], abs=1e-9)
        assert high == pytest.approx(scores[name], abs=1e-9)


def test_interval_of_exact_match_is_the_binomial_one():
    generator = random.Random(1)
    correct = [generator.random() < 0.7 for _ in range(400)]
    hypotheses = ["yes" if is_right else "no" for is_right in correct]
    references = [["yes"]] * 400
    share = sum(correct) / 400
    half = 100 * 1.96 * math.sqrt(share * (1 - share) / 400)
    low, high = intervals(hypotheses, references, list)["exact_match"]
    assert low == pytest.approx(100 * share - half, abs=0.8)
    assert high == pytest.approx(100 * share + half, abs=0.8)


def test_intervals_repeat_with_the_seed_and_hold_the_score():
    first = intervals(HYPOTHESES, REFERENCES, str.split, samples=200, seed=3)
    assert first == intervals(HYPOTHESES, REFERENCES, str.split, samples=200, seed=3)
    assert first != intervals(HYPOTHESES, REFERENCES, str.split, samples=200, seed=4)
    scores = score(HYPOTHESES, REFERENCES, str.split)
    assert all(low <= scores[name] <= high for name, (low, high) in first.items())


def test_each_score_has_a_direction():
    scores = score(["a"], [["a"]], list)
    assert set(scores) <= set(HIGHER_IS_BETTER)
    better = {name for name in scores if HIGHER_IS_BETTER[name]}
    assert better == {"exact_match", "bleu", "chrf", "short_bleu"}


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        ([], [], "no examples to score"),
        (["a"], [["a"], ["b"]], "found 2 lists for 1 hypotheses"),
        (["a", "b"], [["a"], []], "example 2"),
        (["a"], ["a"], "example 1"),
    ],
)
def test_misuse_is_an_error(hypotheses, references, message):
    with pytest.raises(UserError, match=message):
        score(hypotheses, references, list)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("exact_match", ["exact_match", "ser"]),
        ("ser", ["ser", "exact_match"]),
        ("bleu", ["bleu", "chrf"]),
        ("wer", ["wer", "exact_match", "ser", "bleu", "chrf"]),
    ],
)
def test_usual_metrics_of_strings_and_sentences(metric: str, expected: list[str]) -> None:
    assert usual_metrics(metric, ["exact_match", "ser", "wer", "bleu", "chrf"]) == expected


def test_usual_metrics_of_other_tasks_are_all() -> None:
    assert usual_metrics("macro_f1", {"accuracy": 1.0, "macro_f1": 2.0}) == ["macro_f1", "accuracy"]
