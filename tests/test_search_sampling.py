"""Sampling with a source: what is drawn, how often, and that the batch does not show."""

from collections import Counter

import pytest
import torch

from regard.search import Sample, SearchRequest

from .tables import Table, Tables, constraint, everything, probabilities, run, text, texts

TABLE: Table = {
    "": {"a": 0.5, "b": 0.3, "c": 0.2},
    "a": {".": 0.7, "b": 0.3},
    "b": {".": 1.0},
    "c": {".": 0.5, "a": 0.5},
    "ca": {".": 1.0},
}
COUNT = 2000
# a chi-square value with so many degrees of freedom is above this once in ten thousand times
BOUND = {1: 15.1, 2: 18.4, 3: 21.1, 4: 23.5}


def drawn(search: Sample) -> Counter[str]:
    (found,) = run(search, TABLE, nbest=COUNT)
    return Counter(texts(found))


def fits(counts: Counter[str], true: dict[str, float]) -> None:
    """Asserts that the counts may come from these probabilities."""
    assert set(counts) <= set(true)
    distance = sum((counts[o] - COUNT * p) ** 2 / (COUNT * p) for o, p in true.items())
    assert distance < BOUND[len(true) - 1]


def test_frequencies() -> None:
    """a .35, ab .15, b .3, c .1, ca .1"""
    true = everything(TABLE, 5)
    assert true == pytest.approx({"a": 0.35, "ab": 0.15, "b": 0.3, "c": 0.1, "ca": 0.1})
    fits(drawn(Sample()), true)
    fits(drawn(Sample(seed=2)), true)
    with pytest.raises(AssertionError):  # the bound can be broken
        fits(drawn(Sample()), true | {"a": 0.3, "ab": 0.2})


@pytest.mark.parametrize(
    ("options", "true"),
    [
        # of a .5 and b .3 the shares are .625 and .375; of the end .7 and b .3 they stay
        ({"top_k": 2}, {"a": 0.625 * 0.7, "ab": 0.625 * 0.3, "b": 0.375}),
        ({"top_p": 0.75}, {"a": 0.625 * 0.7, "ab": 0.625 * 0.3, "b": 0.375}),
        # at least half of the best: a and b (.3 >= .25); the end alone (.3 < .35)
        ({"min_p": 0.5}, {"a": 0.625, "b": 0.375}),
        # p^2: .25 .09 .04 of .38; .49 .09 of .58; the two after c alike
        (
            {"temperature": 0.5},
            {
                "a": 25 / 38 * 49 / 58,
                "ab": 25 / 38 * 9 / 58,
                "b": 9 / 38,
                "c": 2 / 38,
                "ca": 2 / 38,
            },
        ),
    ],
    ids=["top_k", "top_p", "min_p", "temperature"],
)
def test_frequencies_of_filtered_samples(options: dict[str, float], true: dict[str, float]) -> None:
    assert sum(true.values()) == pytest.approx(1)
    fits(drawn(Sample(**options)), true)


@pytest.mark.parametrize("options", [{"temperature": 0}, {"top_k": 1}, {"top_p": 0}, {"min_p": 1}])
def test_greedy_in_four_ways(options: dict[str, float]) -> None:
    assert set(drawn(Sample(**options))) == {"a"}


def test_scores_are_log_probabilities_before_any_filter() -> None:
    (found,) = run(Sample(top_k=2, temperature=0.7), TABLE, nbest=50)
    true = everything(TABLE, 5)
    assert probabilities(found) == pytest.approx([true[text(one)] for one in found])


def test_samples_of_a_sentence_do_not_depend_on_the_batch() -> None:
    """Whatever is next to it, and however long that is; other sentences draw otherwise."""
    stepper = Tables(*[TABLE] * 6)
    limits, search = torch.full((6,), 5), Sample(seed=7)
    whole = stepper.source([2, 5, 3, 1, 4, 2])
    together = search.run(stepper, SearchRequest(whole, limits, 8))
    for row in range(6):
        size = int(whole.mask[row].sum())
        one = type(whole)(whole.data[row : row + 1, :size], whole.mask[row : row + 1, :size])
        (alone,) = search.run(stepper, SearchRequest(one, limits[:1], 8))
        assert texts(alone) == texts(together[row])
    assert len({tuple(texts(found)) for found in together}) > 1
    other = Sample(seed=8).run(stepper, SearchRequest(whole, limits, 8))
    assert [texts(found) for found in other] != [texts(found) for found in together]


def test_more_samples_start_with_the_same() -> None:
    (few,), (many,) = (run(Sample(), TABLE, nbest=n) for n in (3, 9))
    assert texts(many)[:3] == texts(few)


def test_limits_and_masks_hold() -> None:
    after = {"a": 0.5, "b": 0.4, ".": 0.1}
    endless = {"": {"a": 0.9, "b": 0.1}, "a": after, "b": after}
    (found,) = run(Sample(), endless, limit=4, nbest=40)
    assert max(len(one.tokens) for one in found) == 3
    assert all(one.truncated == (len(one.tokens) == 3) for one in found)
    (found,) = run(Sample(no_repeat_ngram=1), endless, limit=9, nbest=40)
    assert {text(one) for one in found} <= {"a", "ab", "b", "ba"}
    (found,) = run(Sample(min_length=3), endless, limit=4, nbest=20)
    assert {len(one.tokens) for one in found} == {3}
    (found,) = run(Sample(), endless, nbest=20, constraints=[constraint("bb", ban="aa")])
    assert all(text(one).startswith("bb") and "aa" not in text(one) for one in found)
