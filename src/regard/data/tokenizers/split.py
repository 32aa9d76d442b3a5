"""Split text into words and punctuation."""

import itertools
import unicodedata
from functools import lru_cache

ATTACHED = "\uffed"  # prefix of a token that follows the previous one without a space


@lru_cache(maxsize=100_000)
def split_chunk(chunk: str) -> tuple[str, ...]:
    """Return the tokens of a text without whitespace, with ATTACHED before all but the first."""
    if chunk.isalnum():
        return (chunk,)
    pieces: list[str] = []
    for is_word, run in itertools.groupby(chunk, is_word_character):
        characters = list(run)
        pieces += ["".join(characters)] if is_word else characters
    return (pieces[0], *(ATTACHED + piece for piece in pieces[1:]))


def mark_attached(tokens: list[str]) -> list[str]:
    """Return the tokens with the prefix ATTACHED on the first token."""
    return [ATTACHED + tokens[0], *tokens[1:]]


@lru_cache(maxsize=100_000)
def is_word_character(character: str) -> bool:
    """Return whether a character belongs to a word: a letter, digit or combining mark."""
    # Combining marks belong to the previous letter; otherwise Hindi words would be split.
    return character.isalnum() or unicodedata.category(character)[0] == "M"
