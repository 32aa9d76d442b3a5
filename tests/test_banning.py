"""Banned words: in every way a tokenizer can write them, and no others."""

import pytest

from regard.data.tokenizers.build import build_tokenizer
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.inference.shortlist_stepper import _to_list_ids
from regard.search import Beam, Sample, TokenConstraints
from regard.search.hypothesis import NO_CONSTRAINTS
from regard.tasks.banning import boundary_tokens, encode_bans

from .tables import ids, run, text

SENTENCES = [
    "Hello, world! (in here) in a window, inside.",
    "I win, you win; a cat.",
    "中国,中国人",
]


def made(kind: str) -> Tokenizer:
    return build_tokenizer(kind, SENTENCES * 20, 70 if kind in ("bpe", "unigram") else None)


def holds(tokens: list[int], constraint: TokenConstraints) -> bool:
    """Return whether a sequence has a banned phrase, checked position by position."""
    for begin in range(len(tokens)):
        free = begin == 0 or tokens[begin - 1] in constraint.boundary_tokens
        phrases = [*constraint.banned, *(constraint.banned_after_boundary if free else ())]
        if any(tuple(tokens[begin : begin + len(phrase)]) == phrase for phrase in phrases):
            return True
    return False


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word"])
@pytest.mark.parametrize(
    ("word", "having", "free"),
    [
        (",", ["a , b", "win, you", "中国,中国", "Hello,"], ["win; you", "world!"]),
        ("in", ["a in b", "(in here)", "in", ",in"], ["win", "window"]),
        ("中国", ["中国", "a 中国", ",中国"], ["中", "国"]),
    ],
)
def test_words_with_and_without_a_space_before(
    kind: str, word: str, having: list[str], free: list[str]
) -> None:
    tokenizer = made(kind)
    constraint = encode_bans(tokenizer, (word,))
    for sentence in having:
        if kind == "word" and 1 in tokenizer.encode(sentence):
            continue  # an unknown word, such as attached Chinese
        assert holds(tokenizer.encode(sentence), constraint), sentence
    for sentence in free:
        assert not holds(tokenizer.encode(sentence), constraint), sentence


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_part_of_another_word_is_not_banned(kind: str) -> None:
    tokenizer = made(kind)
    parts = [*tokenizer.encode("w"), *tokenizer.encode_attached("in")]
    bracket = [*tokenizer.encode("("), *tokenizer.encode_attached("in")]
    assert (tokenizer.decode(parts), tokenizer.decode(bracket)) == ("win", "(in")
    constraint = encode_bans(tokenizer, ("in",))
    assert not holds(parts, constraint) and holds(bracket, constraint)


@pytest.mark.parametrize("kind", ["char", "whitespace"])
def test_other_vocabularies_have_one_way(kind: str) -> None:
    tokenizer = made(kind)
    constraint = encode_bans(tokenizer, ("in",))
    assert constraint == TokenConstraints(banned=(tuple(tokenizer.encode("in")),))


def test_words_end_at_spaces_punctuation_and_unspaced_characters() -> None:
    tokenizer = made("bpe")
    ends = {tokenizer.token(id)[-1] for id in boundary_tokens(tokenizer)}
    assert {",", "(", "\u2581", "国"} <= ends and not ends & set("abcdefghijklmnopqrstuvwxyz")


# b ends a word, a does not; c is banned if it starts one.
TABLE = {
    "": {"a": 0.6, "b": 0.4},
    "a": {"c": 0.7, ".": 0.3},
    "b": {"c": 0.88, "d": 0.06, "a": 0.02, ".": 0.04},
    "c": {".": 1.0},
    "d": {".": 1.0},
}


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize(("prefix", "best"), [("a", "ac"), ("b", "bd"), ("ba", "bac")])
def test_an_attached_word_is_masked_at_its_start(prefix: str, best: str, beam: int) -> None:
    constraint = TokenConstraints(
        prefix=ids(prefix), banned_after_boundary=(ids("c"),), boundary_tokens=frozenset(ids("b"))
    )
    ((found,),) = run(Beam(beam=beam, length_penalty=0), TABLE, constraints=[constraint])
    assert text(found) == best
    ((free,),) = run(
        Beam(beam=beam, length_penalty=0), TABLE, constraints=[TokenConstraints(prefix=ids(prefix))]
    )
    assert text(free) == prefix + "c"


def test_an_attached_word_of_two_tokens_and_at_the_start() -> None:
    constraint = TokenConstraints(
        banned_after_boundary=(ids("ac"),), boundary_tokens=frozenset(ids("b"))
    )
    ((found,),) = run(
        Beam(beam=4, length_penalty=0, stopping="optimal"), TABLE, constraints=[constraint]
    )
    assert text(found) == "bc"  # .35; ac, which starts the output, would have .42
    drawn = run(Sample(), TABLE, nbest=40, constraints=[constraint])[0]
    assert {text(one) for one in drawn} >= {"bc", "a"} and "ac" not in map(text, drawn)


def test_a_shortlist_keeps_the_bans() -> None:
    """In the indices of the list 3, 5, 8, token 8 is the third."""
    import numpy as np

    constraint = TokenConstraints(
        banned=((5,), (6,)),
        banned_after_boundary=((8, 3), (7, 3)),
        boundary_tokens=frozenset({5, 9}),
    )
    own = np.array([3, 5, 8])
    assert _to_list_ids(constraint, own) == TokenConstraints(
        banned=((1,),), banned_after_boundary=((2, 0),), boundary_tokens=frozenset({1})
    )
    assert _to_list_ids(NO_CONSTRAINTS, own) == NO_CONSTRAINTS
