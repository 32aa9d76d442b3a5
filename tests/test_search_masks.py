"""What a search may not say: lengths, repeats, bans, beginnings. Worked out by hand."""

import math

import pytest
import torch

from regard.search import Beam, Sample, SearchRequest

from .tables import Tables, constraint, probabilities, run, text, texts

SHORT = {"": {".": 0.6, "a": 0.4}, "a": {".": 0.9, "a": 0.1}}
# Endless: a again and again, unless it is forbidden.
AGAIN = {"": {"a": 1.0}, "a": {"a": 0.8, "b": 0.15, ".": 0.05}, "b": {"a": 0.9, ".": 0.1}}
WORDS = {"": {"a": 0.6, "b": 0.3, ".": 0.1}, "a": {"b": 0.9, ".": 0.1}}
GREEDY = Beam(beam=1, length_penalty=0)
PLAIN = Beam(beam=4, length_penalty=0, stopping="optimal")


@pytest.mark.parametrize(
    ("shortest", "best", "p"), [(0, "", 0.6), (1, "a", 0.36), (2, "aa", 0.4 * 0.1 * 0.9)]
)
@pytest.mark.parametrize("beam", [1, 3])
def test_minimum_length(shortest: int, best: str, p: float, beam: int) -> None:
    """'' .6; a .4 x .9; aa .4 x .1 x .9."""
    search = Beam(beam=beam, length_penalty=0, min_length=shortest, stopping="optimal")
    ((found,),) = run(search, SHORT)
    assert text(found) == best and probabilities([found]) == pytest.approx([p])


def test_a_minimum_length_raises_the_limit() -> None:
    ((found,),) = run(Beam(beam=1, min_length=4), SHORT, limit=2)
    assert text(found) == "aaaa"


@pytest.mark.parametrize(
    ("n", "best", "p"),
    [
        (0, "aaaa", 0.8**3 * 0.05),  # until the limit
        (1, "ab", 0.15 * 0.1),  # no letter twice: after b comes neither
        (2, "aaba", 0.8 * 0.15 * 0.9 * 0.05),  # aa, ab, ba have been: only the end is left
    ],
)
def test_no_repeat(n: int, best: str, p: float) -> None:
    """Greedily. What is masked takes nothing with it: the others keep their probabilities."""
    ((found,),) = run(GREEDY.model_copy(update={"no_repeat_ngram": n}), AGAIN, limit=5)
    assert text(found) == best and probabilities([found]) == pytest.approx([p])
    ((found,),) = run(
        Beam(beam=6, length_penalty=0, no_repeat_ngram=n, stopping="optimal"), AGAIN, limit=5
    )
    grams = [text(found)[i : i + n] for i in range(len(text(found)) - n + 1)]
    assert not n or len(grams) == len(set(grams))


@pytest.mark.parametrize(
    ("ban", "best", "p"),
    [
        ("", "ab", 0.6 * 0.9),
        ("ab", "b", 0.3),  # a and b may come, but not together
        ("a", "b", 0.3),
        ("b", "", 0.1),  # '' .1; a .6 x .1
        ("a b", "", 0.1),
        ("h ch abc", "ab", 0.54),
    ],
)
def test_banned_words(ban: str, best: str, p: float) -> None:
    """ab .54, b .3, '' .1, a .06."""
    ((found,),) = run(PLAIN, WORDS, constraints=[constraint(ban=ban)])
    assert text(found) == best and probabilities([found]) == pytest.approx([p])


def test_bans_hold_for_their_own_sentence_only() -> None:
    constraints = [constraint(), constraint(ban="ab"), constraint(ban="b"), constraint()]
    found = run(PLAIN, *[WORDS] * 4, constraints=constraints)
    assert [texts(one) for one in found] == [["ab"], ["b"], [""], ["ab"]]


@pytest.mark.parametrize("beam", [1, 3])
def test_a_prefix(beam: int) -> None:
    """c is hardly ever said (.01), and nothing but a follows it (.7), and the end."""
    table = {"": {"a": 0.99, "c": 0.01}, "a": {".": 1.0}, "c": {"b": 0.3, "a": 0.7}}
    search = Beam(beam=beam, length_penalty=0)
    ((free,),), ((c,),) = (run(search, table, constraints=[constraint(p)]) for p in ("", "c"))
    assert text(free) == "a" and text(c) == "ca"
    assert [math.exp(s) for s in c.token_logprobs] == pytest.approx([0.01, 0.7, 1.0])
    ((cb,),) = run(search, table, constraints=[constraint("cb")])
    assert text(cb) == "cb" and probabilities([cb]) == pytest.approx([0.003])
    ((whole,),) = run(search, table, constraints=[constraint("cb.")])  # the end may be part of it
    assert text(whole) == "cb"


def test_a_prefix_overrides_bans_repeats_and_the_limit() -> None:
    for search in (
        Beam(beam=1, no_repeat_ngram=1),
        Beam(beam=3, no_repeat_ngram=1),
        Sample(no_repeat_ngram=1),
    ):
        ((found,),) = run(search, AGAIN, limit=2, constraints=[constraint("aab", ban="aa b")])
        assert text(found) == "aab"


def test_prefixes_of_different_lengths_in_one_batch() -> None:
    constraints = [constraint("b"), constraint(), constraint("ab"), constraint("a")]
    found = run(PLAIN, *[WORDS] * 4, constraints=constraints)
    assert [texts(one) for one in found] == [["b"], ["ab"], ["ab"], ["ab"]]
    for row, mine in enumerate(constraints):
        assert run(PLAIN, WORDS, constraints=[mine])[0][0].score == pytest.approx(
            found[row][0].score
        )


def test_the_limits_of_the_caller_do_not_change() -> None:
    limits = torch.tensor([2])
    stepper = Tables(AGAIN)
    request = SearchRequest(stepper.source(), limits, constraints=[constraint("aaaa")])
    Beam(min_length=5).run(stepper, request)
    assert limits.tolist() == [2]
