"""Choose the tokenizer for `tokenizer=auto`: char, whitespace, bpe or unigram."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

SAMPLE_SIZE = 20_000  # texts, evenly sampled
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
    """Statistics of sampled texts that determine the tokenizer."""

    texts: int
    words: float  # mean number of whitespace-separated words per text
    characters: float  # mean number of characters per text
    distinct: int  # distinct words
    repeats: float  # mean number of occurrences of a distinct word
    p99_length: int  # 99th percentile of word lengths, in characters
    unspaced: float  # fraction of characters in scripts without spaces


def choose_tokenizer(texts: Sequence[str]) -> tuple[str, str]:
    """Return the kind of tokenizer that suits the texts, and the reason for the user."""
    sample = [text for text in texts[:: max(1, len(texts) // SAMPLE_SIZE)] if text.strip()]
    if not sample:
        return "char", "no text to sample"
    stats = text_stats(sample)
    sampled = f"{stats.texts:,} lines sampled"

    tiny = stats.p99_length <= 2 and stats.words >= 2  # no language has only such short words
    few = stats.distinct <= 1_000 and stats.repeats >= 3
    if tiny or (few and stats.p99_length <= 5 and stats.words >= 3.5):
        return "whitespace", (
            f"{stats.words:.1f} whitespace-separated tokens per line, {stats.distinct:,} distinct, "
            f"nearly all at most {_count(stats.p99_length, 'character')} ({sampled})"
        )
    if stats.unspaced > 0.5 and stats.characters > 10:
        return "unigram", (
            f"{stats.characters:.0f} characters per line, {stats.unspaced:.0%} of them in scripts "
            f"without spaces ({sampled})"
        )
    if stats.words >= 4.5:
        return "bpe", (
            f"sentences: {stats.words:.1f} words per line, {stats.distinct:,} distinct ({sampled})"
        )
    return "char", (
        f"short texts: {_count(round(stats.words, 1), 'word')} and {stats.characters:.1f} "
        f"characters per line on average ({sampled})"
    )


def text_stats(texts: Sequence[str]) -> TextStats:
    """Return the statistics that determine the tokenizer."""
    words = Counter(word for text in texts for word in text.split())
    characters = Counter(character for text in texts for character in text)
    total = words.total()
    unspaced = sum(count for character, count in characters.items() if is_unspaced(character))

    lengths: Counter[int] = Counter()
    for word, count in words.items():
        lengths[len(word)] += count
    p99_length, seen = 0, 0
    for p99_length in sorted(lengths):
        seen += lengths[p99_length]
        if seen >= 0.99 * total:
            break
    return TextStats(
        texts=len(texts),
        words=total / len(texts),
        characters=characters.total() / len(texts),
        distinct=len(words),
        repeats=total / max(1, len(words)),
        p99_length=p99_length,
        unspaced=unspaced / max(1, characters.total()),
    )


def is_unspaced(character: str) -> bool:
    """Return whether a character belongs to a script without spaces between words."""
    return any(first <= ord(character) <= last for first, last in UNSPACED)


def _count(number: float, noun: str) -> str:
    return f"{number:g} {noun}" if number == 1 else f"{number:g} {noun}s"
