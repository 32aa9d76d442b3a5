"""The choice of tokens for `auto`: character, spaced token or subword, with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

SAMPLE = 20_000  # texts looked at, evenly spread
# First and last code points of scripts that are written without spaces between words.
UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3400, 0x9FFF),  # Han
    (0x20000, 0x3FFFF),  # rare Han
)


class TextStats(NamedTuple):
    """What texts look like, in figures."""

    texts: int
    words: float  # mean number of parts between spaces
    characters: float  # mean number
    kinds: int  # different parts between spaces
    repeats: float  # how often each kind occurs on average
    long_part: int  # 99 parts in 100 are at most so long
    unspaced: float  # share of characters of scripts without spaces


def choose_tokenizer(texts: Sequence[str]) -> tuple[str, str]:
    """The kind of tokens that suits the texts, and why, in words."""
    sample = [text for text in texts[:: max(1, len(texts) // SAMPLE)] if text.strip()]
    if not sample:
        return "char", "there is no text to judge by"
    shape = measure(sample)
    looked = f"{shape.texts:,} lines looked at"

    tiny = shape.long_part <= 2 and shape.words >= 2  # no language has only such short words
    few = shape.kinds <= 1_000 and shape.repeats >= 3
    if tiny or (few and shape.long_part <= 5 and shape.words >= 3.5):
        return "whitespace", (
            f"{shape.words:.1f} tokens a line between spaces, from a set of {shape.kinds:,}, "
            f"nearly all at most {_count(shape.long_part, 'character')} long ({looked})"
        )
    if shape.unspaced > 0.5 and shape.characters > 10:
        return "unigram", (
            f"{shape.characters:.0f} characters a line, {shape.unspaced:.0%} of them in scripts "
            f"written without spaces ({looked})"
        )
    if shape.words >= 4.5:
        return "bpe", (
            f"sentences: {shape.words:.1f} words a line, {shape.kinds:,} different ones ({looked})"
        )
    return "char", (
        f"short texts: {_count(round(shape.words, 1), 'word')} and {shape.characters:.1f} "
        f"characters a line on average ({looked})"
    )


def measure(texts: Sequence[str]) -> TextStats:
    """The figures that the choice rests on."""
    parts = Counter(part for text in texts for part in text.split())
    characters = Counter(character for text in texts for character in text)
    total = parts.total()
    unspaced = sum(count for character, count in characters.items() if is_unspaced(character))

    lengths: Counter[int] = Counter()
    for part, count in parts.items():
        lengths[len(part)] += count
    long_part, seen = 0, 0
    for long_part in sorted(lengths):
        seen += lengths[long_part]
        if seen >= 0.99 * total:
            break
    return TextStats(
        texts=len(texts),
        words=total / len(texts),
        characters=characters.total() / len(texts),
        kinds=len(parts),
        repeats=total / max(1, len(parts)),
        long_part=long_part,
        unspaced=unspaced / max(1, characters.total()),
    )


def is_unspaced(character: str) -> bool:
    """Whether a character is of a script that is written without spaces between words."""
    return any(first <= ord(character) <= last for first, last in UNSPACED)


def _count(number: float, noun: str) -> str:
    return f"{number:g} {noun}" if number == 1 else f"{number:g} {noun}s"
