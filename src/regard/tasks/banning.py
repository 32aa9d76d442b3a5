"""Banned words as token sequences, with and without a space before the word."""

from functools import lru_cache

from regard.data.tensors.special import SPECIALS, UNK
from regard.data.tokenizers.split import is_word_character
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.data.tokenizers.tokenizer_choice import is_unspaced
from regard.search.hypothesis import TokenConstraints


def encode_bans(tokenizer: Tokenizer, words: tuple[str, ...]) -> TokenConstraints:
    """Return constraints that ban these words, after a space or attached to other characters.

    A word of letters without a space before it is banned only after a word boundary, such as a
    bracket. Elsewhere it is part of a longer word, which is not banned.
    """
    banned: list[tuple[int, ...]] = []
    after_boundary: list[tuple[int, ...]] = []
    for word in words:
        banned.append(tuple(tokenizer.encode(word)))
        attached = tuple(tokenizer.encode_attached(word))
        always = tokenizer.whole_words or not _continues_word(word[0])
        (banned if always else after_boundary).append(attached)
    banned_known, boundary_known = (
        tuple(phrase for phrase in phrases if phrase and UNK not in phrase)
        for phrases in (banned, after_boundary)
    )
    return TokenConstraints(
        banned=banned_known,
        banned_after_boundary=boundary_known,
        boundary_tokens=boundary_tokens(tokenizer) if boundary_known else frozenset(),
    )


@lru_cache(maxsize=8)
def boundary_tokens(tokenizer: Tokenizer) -> frozenset[int]:
    """Return the tokens after which a new word starts even without a space."""
    tokens = ((id, tokenizer.token(id)) for id in range(len(SPECIALS), len(tokenizer)))
    return frozenset(id for id, token in tokens if token and not _continues_word(token[-1]))


def _continues_word(character: str) -> bool:
    """Return whether adjacent characters of this kind form one word."""
    return is_word_character(character) and not is_unspaced(character)
