"""The amount of text: the number of words and of each character."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

CHUNK_TEXTS = 1 << 14


@dataclass
class Amount:
    """The number of words and of each character in texts.

    A text counts as at least one word per ten characters, for scripts without spaces.
    """

    words: int = 0
    characters: Counter[str] = field(default_factory=Counter)  # in order of first occurrence

    def add(self, texts: list[str]) -> None:
        """Add the words and characters of more texts."""
        self.words += sum([max(text.count(" ") + 1, len(text) // 10) for text in texts])
        count_characters("".join(texts), self.characters)

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.words + other.words, self.characters + other.characters)


def amount_of(texts: Sequence[str]) -> Amount:
    """Return the amount of these texts, from `texts.amount` if there is one."""
    known = getattr(texts, "amount", None)
    if isinstance(known, Amount):
        return known
    amount = Amount()
    for chunk in chunks(texts):
        amount.add(chunk)
    return amount


def chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield the texts in lists of at most CHUNK_TEXTS."""
    iterator = iter(texts)
    while chunk := list(itertools.islice(iterator, CHUNK_TEXTS)):
        yield chunk


def count_characters(text: str, counts: Counter[str]) -> list[str]:
    """Add the characters of a text to the counts; return the distinct characters of the text."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    code_counts = np.bincount(codes)
    characters = [chr(code) for code in np.flatnonzero(code_counts)]
    new = [character for character in characters if character not in counts]
    for character in sorted(new, key=text.index):
        counts[character] = 0
    for character in characters:
        counts[character] += int(code_counts[ord(character)])
    return characters
