"""Required words, worked out by hand and compared with all possible outputs."""

import pytest

from regard.core.errors import UserError
from regard.search import Beam, Sample

from .tables import constraint, everything, probabilities, run, text, texts

# a (.9 x .9) is best by far. With c: c alone .1 x .8 = .08, ac .9 x .1 x .8 = .072.
TABLE = {"": {"a": 0.9, "c": 0.1}, "a": {".": 0.9, "c": 0.1}, "c": {".": 0.8, "b": 0.2}}
# Everything may follow everything.
FREE = {
    "": {"a": 0.5, "b": 0.2, "c": 0.1, "d": 0.1, ".": 0.1},
    "a": {"a": 0.5, "b": 0.2, "c": 0.05, "d": 0.05, ".": 0.2},
    "b": {"a": 0.3, "b": 0.1, "c": 0.2, "d": 0.1, ".": 0.3},
    "c": {"a": 0.4, "b": 0.1, "c": 0.1, "d": 0.1, ".": 0.3},
    "d": {"a": 0.6, "b": 0.1, "c": 0.1, "d": 0.1, ".": 0.1},
}


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_one_word(beam: int) -> None:
    search = Beam(beam=beam, length_penalty=0, stopping="optimal")
    assert text(run(search, TABLE)[0][0]) == "a"
    ((found,),) = run(search, TABLE, constraints=[constraint(require="c")])
    if beam > 1:
        assert text(found) == "c" and probabilities([found]) == pytest.approx([0.08])
    assert "c" in text(found)


@pytest.mark.parametrize(
    "require",
    ["d", "c d", "bc", "ab bc", "ab ac", "aab", "aba bab", "cc", "d d", "a b c d", "dcb"],
)
@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("room", [0, 2])
def test_all_words_are_there(require: str, beam: int, room: int) -> None:
    """Several, long, overlapping, with a common beginning; also where they just fit."""
    words = require.split()
    limit = sum(map(len, words)) + 1 + room
    (found,) = run(
        Beam(beam=beam), FREE, limit=limit, nbest=beam, constraints=[constraint(require=require)]
    )
    assert found and all(word in text(one) for one in found for word in words)
    assert all(len(one.tokens) < limit for one in found)
    assert len(set(texts(found))) == len(found)


@pytest.mark.parametrize("require", ["d", "bc", "ab bc", "ab ac", "aab"])
def test_a_wide_beam_finds_the_best_that_has_them(require: str) -> None:
    """Among all outputs of at most four letters, counted out."""
    limit = 5
    true = {
        output: p
        for output, p in everything(FREE, limit - 1).items()
        if all(word in output for word in require.split())
    }
    wide = Beam(beam=400, length_penalty=0, stopping="optimal")
    ((found,),) = run(wide, FREE, limit=limit, constraints=[constraint(require=require)])
    assert probabilities([found])[0] == pytest.approx(max(true.values()))
    assert true[text(found)] == pytest.approx(max(true.values()))


def test_an_overlap_is_enough() -> None:
    """abc has ab and bc in three letters: nothing is reported twice."""
    table = {"": {"a": 1.0}, "a": {"b": 1.0}, "b": {"c": 0.9, "a": 0.1}, "c": {".": 0.9, "a": 0.1}}
    ((found,),) = run(
        Beam(beam=2, length_penalty=0), table, constraints=[constraint(require="ab bc")]
    )
    assert text(found) == "abc"


def test_a_phrase_that_starts_too_early() -> None:
    """aaab ends in aab, though its first aa was in vain."""
    table = {"": {"a": 1.0}, "a": {"a": 0.5, "b": 0.5}, "b": {".": 0.99, "a": 0.01}}
    ((found,),) = run(
        Beam(beam=2, length_penalty=0), table, constraints=[constraint("aaa", require="aab")]
    )
    assert text(found) == "aaab"


def test_a_common_prefix_is_no_trap() -> None:
    """ab and ac within four letters: aa, which is probable, would leave room for one only."""
    table = {
        "": {"a": 1.0},
        "a": {"a": 0.7, "b": 0.2, "c": 0.1},
        "b": {"a": 0.5, ".": 0.5},
        "c": {"a": 0.5, ".": 0.5},
    }
    ((found,),) = run(Beam(beam=1), table, limit=5, constraints=[constraint(require="ab ac")])
    assert text(found) == "abac"


def test_with_a_prefix_and_bans() -> None:
    """The beginning may hold a word already; a ban may forbid the nearest way to another."""
    search = Beam(beam=4, length_penalty=0, stopping="optimal")
    ((found,),) = run(search, FREE, limit=7, constraints=[constraint("d", require="d")])
    assert text(found) == "da"  # .1 x .6 x .2 = .012, more than d alone: .1 x .1
    ((found,),) = run(
        search, FREE, limit=7, constraints=[constraint("b", require="d", ban="bd ad")]
    )
    assert text(found).startswith("b") and "d" in text(found)
    assert "bd" not in text(found) and "ad" not in text(found)


def test_sentences_with_and_without_constraints_in_one_batch() -> None:
    """Each as if it were alone: also where the end is likely, and may take the place of b."""
    ends = {"": {".": 0.4, "a": 0.35, "b": 0.25}, "a": {"c": 0.5, "d": 0.5}}
    constraints = [
        constraint(),
        constraint(require="d c"),
        constraint("b"),
        constraint(require="bc"),
        constraint(),
        constraint(),
    ]
    for beam, nbest, groups in ((1, 1, 1), (2, 2, 1), (3, 3, 1), (4, 2, 2)):
        search = Beam(beam=beam, beam_groups=groups, stopping="optimal")
        tables = [FREE, FREE, FREE, FREE, TABLE, ends]
        together = run(search, *tables, limit=6, nbest=nbest, constraints=constraints)
        for table, mine, found in zip(tables, constraints, together, strict=True):
            (alone,) = run(search, table, limit=6, nbest=nbest, constraints=[mine])
            assert texts(alone) == texts(found)
            assert [h.score for h in alone] == pytest.approx([h.score for h in found])


def test_what_cannot_be() -> None:
    with pytest.raises(UserError, match="no hypothesis contains all required words"):
        run(Beam(beam=3), FREE, constraints=[constraint(require="d", ban="d")])
    with pytest.raises(UserError, match="not supported with sampling"):
        run(Sample(), FREE, constraints=[constraint(require="d")])
