"""How a beam ranks and what it records: groups, coverage, stops and the trace. By hand."""

import math

import pytest
import torch

from regard.core.errors import UserError
from regard.search import Beam, Hypothesis, SearchRequest
from regard.search.trace import Trace

from .tables import Tables, ids, probabilities, run, text, texts

# Three answers: a .5 (.45 at once, .05 as ad), b .3, c .2.
THREE = {"": {"a": 0.5, "b": 0.3, "c": 0.2}, "a": {".": 0.9, "d": 0.1}}


def test_groups_avoid_each_other() -> None:
    """log .5 = -.693, log .3 = -1.204. The second group pays .7 for a: b is better then."""
    search = Beam(
        beam=2, beam_groups=2, length_penalty=0, diversity_penalty=0.7, stopping="optimal"
    )
    (found,) = run(search, THREE, nbest=2)
    assert texts(found) == ["a", "b"]
    assert probabilities(found) == pytest.approx([0.45, 0.3])  # scores stay what they are


def test_groups_that_hardly_avoid_each_other() -> None:
    """It pays .4: a is still better. Both find a and ad; each is given once."""
    search = Beam(
        beam=2, beam_groups=2, length_penalty=0, diversity_penalty=0.4, stopping="optimal"
    )
    (found,) = run(search, THREE, nbest=2)
    assert texts(found) == ["a", "ad"]


@pytest.mark.parametrize(("strength", "letters"), [(1.0, "abc"), (0.6, "ab")])
def test_what_three_groups_select(strength: float, letters: str) -> None:
    """First a (-.693), then b (-1.204). The third pays for both of them: at 1.0 c (-1.609) is
    better than a (-1.693); at .6 a is (-1.293)."""
    stepper, trace = Tables(THREE), Trace()
    search = Beam(beam=3, beam_groups=3, diversity_penalty=strength)
    search.run(stepper, SearchRequest(stepper.source(), torch.tensor([5])), trace)
    goes = {branch.token for branch in trace.steps[0][0] if branch.status == "kept"}
    assert goes == set(ids(letters))


def test_groups_in_a_vocabulary_smaller_than_they_are() -> None:
    (found,) = run(
        Beam(beam=60, beam_groups=2, diversity_penalty=1.0, stopping="optimal"), THREE, nbest=60
    )
    assert sorted(texts(found)) == ["a", "ad", "b", "c"]


# Two hypotheses: a (.6) attends to the first position and then to both; b (.4) attends to the first
# and then to the second.
LOOKS = {"": [1.0, 0.0], "a": [0.5, 0.5], "b": [0.0, 1.0]}
TWO = {"": {"a": 0.6, "b": 0.4}}


@pytest.mark.parametrize(("weight", "best"), [(0.0, "a"), (0.4, "a"), (1.0, "b")])
def test_coverage(weight: float, best: str) -> None:
    """a: log .6 + weight x (log 1 + log .5) = -.511 - .693 weight. b: log .4 = -.916, all covered.

    The second sentence has a place more of padding, which costs nothing.
    """
    search = Beam(beam=2, length_penalty=0, coverage_penalty=weight, stopping="optimal")
    found = run(search, TWO, TWO, looks=LOOKS, lengths=[2, 2], nbest=2)
    padded = run(search, TWO, TWO, looks=LOOKS, lengths=[2, 3], nbest=2)
    for both in (found[0], found[1], padded[0]):
        scores = {text(one): one.score for one in both}
        true = {"a": math.log(0.6) + weight * math.log(0.5), "b": math.log(0.4)}
        assert scores == pytest.approx(true, abs=1e-5) and text(both[0]) == best


def test_coverage_counts_positions_without_attention() -> None:
    """A position without attention costs the same as one with a millionth."""
    search = Beam(beam=1, length_penalty=0, coverage_penalty=1.0)
    ((found,),) = run(search, {"": {"a": 1.0}}, looks={"": [1.0], "a": [1.0]}, lengths=[2])
    assert found.score == pytest.approx(math.log(1e-6), rel=1e-4)


def test_coverage_of_a_model_without_attention() -> None:
    class Blind(Tables):
        def step(self, *args):  # type: ignore[no-untyped-def]
            from regard.nn.capture_hooks import active_recorder

            found = super().step(*args)
            active_recorder().cross.clear()  # type: ignore[union-attr]
            return found

    stepper = Blind(TWO)
    with pytest.raises(UserError, match="no attention to its source"):
        Beam(coverage_penalty=0.5).run(stepper, SearchRequest(stepper.source(), torch.tensor([5])))


# a (.5) is over first; bcd (.405) comes later: less probable, but longer, so better on average.
LATE = {"": {"a": 0.5, "b": 0.45, "h": 0.05}, "b": {"c": 1.0}, "c": {"d": 0.9, "e": 0.1}}


def stopped(stop: str, length_penalty: float, beam: int = 2) -> Hypothesis:
    ((found,),) = run(Beam(beam=beam, length_penalty=length_penalty, stopping=stop), LATE)
    return found


def test_when_a_sentence_is_done() -> None:
    """length_penalty 1. a: log .5 / 2 = -.347. bcd: log (.45 x .9) / 4 = -.226.

    After two tokens a ends and is the best of the step: `first` stops. One output more must end
    for `full`, which bcd is. At its length of two, bc has log .45 / 2 = -.399, behind a: so
    `likely` stops. `exact` knows that bc may come to log .45 / 10 = -.080, and continues.
    """
    assert text(stopped("first", 1.0)) == "a"
    assert text(stopped("no_gain", 1.0)) == "a"
    assert text(stopped("beam_full", 1.0)) == "bcd"
    assert text(stopped("optimal", 1.0)) == "bcd"
    assert stopped("optimal", 1.0).score == pytest.approx(math.log(0.45 * 0.9) / 4)
    assert {text(stopped(stop, 0.0)) for stop in ("first", "no_gain", "beam_full", "optimal")} == {
        "a"
    }


def test_beam_full_may_miss_what_optimal_finds() -> None:
    """beam 1, on its way to a: nothing is left when it ends, whatever the rule."""
    assert {
        text(stopped(stop, 1.0, 1)) for stop in ("first", "no_gain", "beam_full", "optimal")
    } == {"a"}
    early = {"": {"a": 0.5, "b": 0.5}, "a": {".": 0.6, "c": 0.4}, "b": {".": 0.6, "d": 0.4}}
    ((full,),) = run(Beam(beam=2, length_penalty=1.5, stopping="beam_full"), early)
    ((exact,),) = run(Beam(beam=2, length_penalty=1.5, stopping="optimal"), early)
    assert text(full) in ("a", "b") and text(exact) in ("ac", "bd")  # -.426 against -.310


def test_the_trace() -> None:
    """Every candidate of the search, and its status.

    beam 2. First a .5 and b .3 continue, c .2 is pruned. Then a. .45 and b. .3 are the best two
    and end; ad .05 continues, and ends.
    """
    stepper, trace = Tables(THREE), Trace()
    request = SearchRequest(stepper.source(), torch.tensor([5]), nbest=2)
    Beam(beam=2, length_penalty=0, stopping="optimal").run(stepper, request, trace)
    first, second = trace.steps[0][:2]
    statuses = {branch.token: (branch.status, math.exp(branch.total)) for branch in first}
    a, b, c, d, end = ids("abcd.")
    assert statuses == {
        a: ("kept", pytest.approx(0.5)),
        b: ("kept", pytest.approx(0.3)),
        c: ("pruned", pytest.approx(0.2)),
    }
    known = {(branch.prefix, branch.token): branch for branch in second}
    assert {key: branch.status for key, branch in known.items()} == {
        ((a,), end): "finished",
        ((b,), end): "finished",
        ((a,), d): "kept",
    }
    assert math.exp(known[(a,), d].logprob) == pytest.approx(0.1)


def test_the_trace_of_an_eos_outside_the_beam() -> None:
    """Behind the best two, an end is neither kept nor gone on with."""
    table = {"": {"a": 0.5, "b": 0.4, ".": 0.1}}
    stepper, trace = Tables(table), Trace()
    Beam(beam=2).run(stepper, SearchRequest(stepper.source(), torch.tensor([5])), trace)
    statuses = {branch.token: branch.status for branch in trace.steps[0][0]}
    assert statuses == dict(zip(ids("ab."), ("kept", "kept", "pruned"), strict=True))
