"""The search that is tuned after training: other ranks of n-best lists, and when they count."""

import math
from types import SimpleNamespace

import pytest

from regard import metrics
from regard.config.load import load_config, user_settings
from regard.data.reading.read import Example
from regard.metrics.metric_names import METRICS
from regard.search import Beam, Hypothesis, Sample
from regard.search.beam_options import LENGTH_PENALTIES
from regard.training.search_tuning import (
    ScoredSearch,
    describe_change,
    select,
    tuning_sample,
)

from .tables import run, text

SHORT = Hypothesis((7,), -1.0, (-0.4, -0.6))  # L = 2
LONG = Hypothesis((7, 8, 9), -1.5, (-0.3, -0.3, -0.4, -0.5))  # L = 4


def ranked(search: Beam, *hypotheses: Hypothesis) -> list[Hypothesis]:
    """The hypotheses with the scores of a search, best first. By hand: log p / L^p."""
    power = {"average": lambda n: n, "gnmt": lambda n: (5 + n) / 6, "none": lambda n: 1}
    base = power[search.length_norm]
    scored = [
        Hypothesis(
            one.tokens,
            one.log_probability / base(len(one.token_logprobs)) ** search.length_penalty,
            one.token_logprobs,
        )
        for one in hypotheses
    ]
    return sorted(scored, key=lambda one: -one.score)


@pytest.mark.parametrize(
    ("norm", "penalty", "best"),
    [
        ("average", 0.0, SHORT),  # -1 and -1.5
        ("average", 0.5, SHORT),  # -1 / 1.41 = -.71 and -1.5 / 2 = -.75
        ("average", 0.75, LONG),  # -1 / 1.68 = -.59 and -1.5 / 2.83 = -.53
        ("average", 1.5, LONG),  # -1 / 2.83 = -.35 and -1.5 / 8 = -.19
        ("gnmt", 1.0, SHORT),  # -1 / (7 / 6) = -.86 and -1.5 / (9 / 6) = -1
        ("gnmt", 2.0, LONG),  # -1 / 1.36 = -.73 and -1.5 / 2.25 = -.67
    ],
)
@pytest.mark.parametrize("found_with", [0.0, 0.75, 1.5])
def test_ranks_by_another_length_penalty(
    norm: str, penalty: float, best: Hypothesis, found_with: float
) -> None:
    found = Beam(length_norm=norm, length_penalty=found_with)
    other = Beam(length_norm=norm, length_penalty=penalty)
    (first,) = found.rerank([ranked(found, SHORT, LONG)], other)
    assert first.tokens == best.tokens


def test_the_coverage_term_stays() -> None:
    """With penalty 0 the short one wins by .5, unless its coverage costs .6."""
    found, other = (Beam(length_penalty=p, coverage_penalty=0.2) for p in (1.0, 0.0))
    covered = Hypothesis(LONG.tokens, -1.5 / 4, LONG.token_logprobs)
    for cost, best in ((0.4, SHORT), (0.6, LONG)):
        uncovered = Hypothesis(SHORT.tokens, -1.0 / 2 - cost, SHORT.token_logprobs)
        (first,) = found.rerank([[covered, uncovered]], other)
        assert first.tokens == best.tokens


@pytest.mark.parametrize("penalty", LENGTH_PENALTIES)
def test_the_search_itself_ranks_the_same(penalty: float) -> None:
    """a ends with .3, ab with .27, abc with .25, abcd with .18: longer ones win with penalties."""
    table = {
        "": {"a": 1.0},
        "a": {".": 0.3, "b": 0.7},
        "ab": {".": 0.27 / 0.7, "c": 0.43 / 0.7},
        "abc": {".": 0.25 / 0.43, "d": 0.18 / 0.43},
    }
    found, other = Beam(beam=4), Beam(beam=4, length_penalty=penalty)
    (best,) = found.rerank(run(found, table, nbest=4), other)
    ((first, *_),) = run(other, table, nbest=4)
    assert text(best) == text(first)
    assert (text(best) == "a") == (penalty == 0)


def test_equal_hypotheses_keep_their_order() -> None:
    search, other = Beam(), Beam(length_penalty=1.5)
    twins = [Hypothesis((n,), -1.0, (-0.5, -0.5)) for n in (8, 7)]
    assert search.rerank([twins], other) == [twins[0]]


def test_what_is_compared() -> None:
    nbest, reranked, searched = Beam().variants([])
    assert nbest == 5 and [one.beam for one in searched] == [1]
    assert [one.length_penalty for one in reranked[:2]] == [0.5, 1.0]  # nearest first
    assert {one.length_penalty for one in reranked} == {*LENGTH_PENALTIES} - {0.75}
    assert not Beam().variants(["length_penalty"]).reranked
    assert not Beam().variants(["beam"]).searched
    assert not Beam(length_norm="none").variants([]).reranked
    assert not Beam(beam=6, beam_groups=2).variants([]).searched
    for search in (Beam(beam=1), Sample()):
        assert search.variants([]) == (1, (), ())


# How much is clear


def test_standard_errors() -> None:
    assert metrics.standard_error("exact_match", 50.0, 100) == 5.0
    assert metrics.standard_error("bleu", 20.0, 400) == 2.0
    assert metrics.standard_error("wer", 130.0, 400) == 0.0  # a rate may exceed 100
    assert metrics.standard_error("ser", 100.0, 9) == metrics.standard_error("f1", 0.0, 9) == 0.0
    unbounded = [name for name in METRICS if not METRICS[name].is_bounded]
    assert "perplexity" in unbounded and "rmse" in unbounded
    assert not any(metrics.standard_error(name, 50.0, 100) for name in unbounded)


@pytest.mark.parametrize(
    ("metric", "before", "after", "better"),
    [
        ("exact_match", 50.0, 52.4, False),  # half an error of 100 examples is 2.5
        ("exact_match", 50.0, 52.6, True),
        ("exact_match", 50.0, 40.0, False),
        ("ser", 50.0, 47.4, True),
        ("ser", 50.0, 52.6, False),
        ("exact_match", 0.0, 0.2, False),  # one example more is not clear, though 0 has no error
    ],
)
def test_a_gain_must_be_clear(metric: str, before: float, after: float, better: bool) -> None:
    current, other = ScoredSearch(Beam(), before), ScoredSearch(Beam(length_penalty=1), after)
    count = 500 if before == 0 else 100
    assert select(current, [other], 0.5, metric, count) is (other if better else current)
    assert select(current, [], 0.5, metric, count) is current


def test_greedy_must_be_better_by_a_whole_error() -> None:
    current, other = ScoredSearch(Beam(), 50.0), ScoredSearch(Beam(beam=1), 54.0)
    assert select(current, [other], 1.0, "exact_match", 100) is current
    assert select(current, [other], 1.0, "exact_match", 400) is other


def test_what_changed_and_why() -> None:
    before, after = ScoredSearch(Beam(), 30.62), ScoredSearch(Beam(length_penalty=1.0), 31.18)
    (tuned,) = describe_change(before, after, "bleu", 500)
    assert (tuned.key, tuned.value, tuned.default) == ("search.length_penalty", 1.0, 0.75)
    assert tuned.reason == "dev bleu 31.2, 30.6 with the default 0.75; 500 examples"
    assert describe_change(before, before, "bleu", 500) == []


@pytest.mark.parametrize(
    ("examples", "seconds", "budget", "count"),
    [
        (49, 0.1, None, 0),
        (50, 0.1, None, 50),
        (800, 0.1, None, 500),
        (500, 4.0, None, 500),  # the same on every machine
        (500, 4.0, 10.0, 100),  # 500 would take 2.5 x 4 s
        (500, 4.0, 100.0, 150),  # 3 % of the budget are 3 s
        (500, 4.0, 1000.0, 500),
        (500, 20.0, 10.0, 0),  # 20 examples
    ],
)
def test_examples_that_there_is_time_for(
    examples: int, seconds: float, budget: float | None, count: int
) -> None:
    given = [Example(str(i), ("x",)) for i in range(examples)]
    training = SimpleNamespace(budget=budget)
    run = SimpleNamespace(
        config=SimpleNamespace(training=training),
        state=SimpleNamespace(validation_seconds=seconds),
    )
    sample = tuning_sample(run, given)
    assert len(sample) == count and sample == tuning_sample(run, given)
    assert sample == [one for one in given if one in sample]  # in their order


def test_variants_have_the_scores_they_have_alone() -> None:
    references = [["a b c", "a b"], ["d e f g"], ["h"]]
    variants = [
        ["a b c", "d e", "h"],
        ["a b", "d e", "x"],
        ["a b c", "d e f g", "h"],
        ["a b c", "d e", "h"],
    ]
    found = metrics.score_variants(variants, references, str.split)
    alone = [metrics.score(one, references, str.split) for one in variants]
    for one, other in zip(found, alone, strict=True):
        assert one == pytest.approx(other)
    assert math.isclose(found[2]["exact_match"], 100.0)


def test_settings_of_the_user_are_known() -> None:
    config = load_config(None, ["search.length_penalty=0.75", "training.steps=3"])
    assert user_settings(config) == {"search.length_penalty", "training.steps"}
    assert user_settings(load_config()) == frozenset()
