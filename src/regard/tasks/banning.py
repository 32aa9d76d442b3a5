"""A banned word in tokens: in every way in which the vocabulary writes it."""

from functools import lru_cache

from regard.data.tensors.special import SPECIALS, UNK
from regard.data.tokenizers.split import is_word_character
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.data.tokenizers.tokenizer_choice import is_unspaced
from regard.search.hypothesis import TokenConstraints


def bans(tokenizer: Tokenizer, words: tuple[str, ...]) -> TokenConstraints:
    """The wish that none of these words comes, neither behind a space nor glued to something.

    A word of letters is glued only where another word has ended, as behind a bracket: else it is
    a part of that word, which is not banned.
    """
    banned: list[tuple[int, ...]] = []
    glued: list[tuple[int, ...]] = []
    for word in words:
        banned.append(tuple(tokenizer.encode(word)))
        behind = tuple(tokenizer.encode_attached(word))
        free = tokenizer.whole_words or not _goes_on(word[0])
        (banned if free else glued).append(behind)
    possible, there = (
        tuple(phrase for phrase in phrases if phrase and UNK not in phrase)
        for phrases in (banned, glued)
    )
    return TokenConstraints(
        banned=possible,
        banned_after_boundary=there,
        boundary_tokens=word_ends(tokenizer) if there else frozenset(),
    )


@lru_cache(maxsize=8)
def word_ends(tokenizer: Tokenizer) -> frozenset[int]:
    """The tokens behind which a new word begins, even without a space."""
    tokens = ((id, tokenizer.token(id)) for id in range(len(SPECIALS), len(tokenizer)))
    return frozenset(id for id, token in tokens if token and not _goes_on(token[-1]))


def _goes_on(sign: str) -> bool:
    """Whether a sign is one of those that, glued together, make up a word."""
    return is_word_character(sign) and not is_unspaced(sign)
