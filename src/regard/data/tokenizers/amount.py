"""How much text there is: its words and its characters, counted in portions."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

AT_ONCE = 1 << 14  # texts looked at together


@dataclass
class Amount:
    """words: where a script has no spaces, ten characters count as one. characters: how often."""

    words: int = 0
    characters: Counter[str] = field(default_factory=Counter)  # in order of first occurrence

    def add(self, texts: list[str]) -> None:
        """Counts some more texts."""
        self.words += sum([max(text.count(" ") + 1, len(text) // 10) for text in texts])
        count_characters("".join(texts), self.characters)

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.words + other.words, self.characters + other.characters)


def amount_of(texts: Sequence[str]) -> Amount:
    """The amount of these texts; texts in a file know theirs."""
    known = getattr(texts, "amount", None)
    if isinstance(known, Amount):
        return known
    amount = Amount()
    for some in portions(texts):
        amount.add(some)
    return amount


def portions(texts: Iterable[str]) -> Iterator[list[str]]:
    """The texts in lists of a bearable size."""
    every = iter(texts)
    while some := list(itertools.islice(every, AT_ONCE)):
        yield some


def count_characters(text: str, counts: Counter[str]) -> list[str]:
    """Adds the characters of a text to the counts; gives back which ones it has."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    found = np.bincount(codes)
    characters = [chr(code) for code in np.flatnonzero(found)]
    new = [character for character in characters if character not in counts]
    for character in sorted(new, key=text.index):
        counts[character] = 0
    for character in characters:
        counts[character] += int(found[ord(character)])
    return characters
