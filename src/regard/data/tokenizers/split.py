"""Words and punctuation: where text without white space is cut."""

import itertools
import unicodedata
from functools import lru_cache

ATTACHED = "\uffed"  # stands before a word token that follows the one before it without a space


@lru_cache(maxsize=100_000)
def split_chunk(chunk: str) -> tuple[str, ...]:
    """The words and punctuation of text without white space, glued ones marked."""
    if chunk.isalnum():
        return (chunk,)
    pieces: list[str] = []
    for is_word, run in itertools.groupby(chunk, is_word_character):
        characters = list(run)
        pieces += ["".join(characters)] if is_word else characters
    return (pieces[0], *(ATTACHED + piece for piece in pieces[1:]))


def mark_attached(tokens: list[str]) -> list[str]:
    """The same tokens behind another one without a space."""
    return [ATTACHED + tokens[0], *tokens[1:]]


@lru_cache(maxsize=100_000)
def is_word_character(character: str) -> bool:
    """Whether a character is one of those that words are made of, no punctuation."""
    # Marks belong to the letter before them: without them Hindi words would fall to pieces.
    return character.isalnum() or unicodedata.category(character)[0] == "M"
