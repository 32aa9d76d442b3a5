"""Choose the tokenizer for `tokenizer=auto`: char, char_features, whitespace, bpe or unigram."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from regard.data.tokenizers.features import FeatureTokenizer, split_features

SAMPLE_SIZE = 20_000  # texts, evenly sampled
MIN_WITH_BUNDLE = 0.95  # fraction of texts with exactly one feature bundle
MAX_FEATURES = 1_000  # distinct features
MAX_NEW_WORDS = 0.001  # fraction of words in every second line that no other line has
MIN_COMBINATIONS = 5  # distinct texts per distinct word in a closed vocabulary
MIN_REPEATS = 3  # mean number of occurrences of a distinct word or feature
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


def choose_tokenizer(texts: Sequence[str], closed: bool = False) -> tuple[str, str]:
    """Return the kind of tokenizer that suits the texts, and the reason for the user.

    closed: whether texts with a closed vocabulary are split at whitespace.
    """
    sample = sample_texts(texts)
    if not sample:
        return "char", "no text to sample"
    return _choose_features(sample) or _choose_plain(sample, closed)


def _choose_features(sample: Sequence[str]) -> tuple[str, str] | None:
    """Return char_features and the reason if nearly every text has a feature bundle."""
    words = [text.split() for text in sample]
    bundles = [[word for word in row if split_features(word)] for row in words]
    fraction = sum(len(row) == 1 for row in bundles) / len(sample)
    if fraction < MIN_WITH_BUNDLE:
        return None
    counts = Counter(one for row in bundles for word in row for one in split_features(word))
    mean = counts.total() / len(sample)
    if mean < 2 or len(counts) > min(MAX_FEATURES, counts.total() / MIN_REPEATS):
        return None
    rest = [" ".join(word for word in row if not split_features(word)) for row in words]
    if choose_tokenizer(rest)[0] != "char":
        return None
    example = next(row[0] for row in bundles if row)
    return FeatureTokenizer.kind, (
        f"{fraction:.0%} of the lines have a feature bundle such as {example}: {mean:.1f} features "
        f"per line, {len(counts):,} distinct ({len(sample):,} lines sampled)"
    )


def _choose_plain(sample: Sequence[str], closed: bool) -> tuple[str, str]:
    """Return the kind of tokenizer for texts without feature bundles, and the reason."""
    stats = text_stats(sample)
    sampled = f"{stats.texts:,} lines sampled"

    tiny = stats.p99_length <= 2 and stats.words >= 2  # no language has only such short words
    few = stats.distinct <= 1_000 and stats.repeats >= MIN_REPEATS
    if tiny or (few and stats.p99_length <= 5 and stats.words >= 3.5):
        return "whitespace", (
            f"{stats.words:.1f} whitespace-separated tokens per line, {stats.distinct:,} distinct, "
            f"nearly all at most {_count(stats.p99_length, 'character')} ({sampled})"
        )
    if closed and few and stats.words >= 2 and stats.unspaced == 0 and is_closed(sample):
        return "whitespace", (
            f"closed vocabulary: {stats.distinct:,} distinct words, {stats.words:.1f} per line; "
            f"other lines have no new words ({sampled})"
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


def is_closed(texts: Sequence[str]) -> bool:
    """Return whether the texts combine few words in many ways.

    One half of them has hardly any word that the other half does not have.
    """
    words = {word for text in texts for word in text.split()}
    if len(set(texts)) < MIN_COMBINATIONS * len(words):
        return False
    known = {word for text in texts[::2] for word in text.split()}
    other = [word for text in texts[1::2] for word in text.split()]
    return sum(word not in known for word in other) <= MAX_NEW_WORDS * len(other)


def sample_texts(texts: Sequence[str]) -> list[str]:
    """Return about SAMPLE_SIZE of the texts, evenly sampled, without blank ones."""
    return [text for text in texts[:: max(1, len(texts) // SAMPLE_SIZE)] if text.strip()]


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
