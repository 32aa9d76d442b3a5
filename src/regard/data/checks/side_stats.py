"""Statistics of all sources, or of all targets: lengths, characters, unknown tokens, issues."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from regard.data.checks.survey import IssueCount, SideSurvey
from regard.data.tensors.special import UNK
from regard.data.tokenizers.tokenizer import Tokenizer

PERCENTILES = (50, 90, 99, 100)
MAX_RARE = 2  # a character with at most this many occurrences is rare


@dataclass
class SideStats:
    """Statistics of all sources or all targets of train, and of unknown tokens in dev."""

    tokenizer: str
    vocab_size: int
    lengths: dict[int, int]  # percentile to length in tokens
    characters: int
    scripts: dict[str, float]  # fraction of the letters per script, largest first
    rare: dict[str, int]  # characters that occur once or twice
    empty: IssueCount
    edge_whitespace: IssueCount  # leading or trailing whitespace
    double_spaces: IssueCount
    control: IssueCount
    replacement: IssueCount  # U+FFFD
    not_nfc: IssueCount
    dev_tokens: int
    unknown_tokens: int
    unknown_examples: int
    unknown: dict[str, int]  # count of the most frequent unknown tokens


def side_stats(
    survey: SideSurvey, lengths: np.ndarray, dev: Sequence[str], tokenizer: Tokenizer
) -> SideStats:
    """Return the statistics of sources or targets.

    survey: survey of the train texts. lengths: (N,), tokens per train text. dev: dev texts.
    """
    characters = survey.characters
    encoded = tokenizer.encode_all(dev)
    unknown = [text for text, ids in zip(dev, encoded, strict=True) if UNK in ids]
    return SideStats(
        tokenizer=tokenizer.kind,
        vocab_size=len(tokenizer),
        lengths=percentiles(lengths),
        characters=len(characters),
        scripts=scripts(characters),
        rare={mark: count for mark, count in characters.items() if count <= MAX_RARE},
        **survey.issues,
        dev_tokens=sum(map(len, encoded)),
        unknown_tokens=sum(ids.count(UNK) for ids in encoded),
        unknown_examples=len(unknown),
        unknown=unknown_tokens(unknown, tokenizer),
    )


def percentiles(lengths: Iterable[int] | np.ndarray) -> dict[int, int]:
    """Return the length (nearest rank) at each of PERCENTILES, as a dict."""
    lengths = lengths if isinstance(lengths, np.ndarray) else np.fromiter(lengths, np.int64)
    if not len(lengths):
        return dict.fromkeys(PERCENTILES, 0)
    up_to = np.cumsum(np.bincount(lengths))  # number of texts up to each length
    ranks = {percentile: -(-percentile * len(lengths) // 100) for percentile in PERCENTILES}
    return {percentile: int(np.searchsorted(up_to, rank)) for percentile, rank in ranks.items()}


def scripts(characters: Counter[str]) -> dict[str, float]:
    """Return the fraction of letters per script, the first word of a letter's Unicode name."""
    counts: Counter[str] = Counter()
    for character, count in characters.items():
        if (
            character.isalpha() and unicodedata.category(character) != "Lm"
        ):  # modifier letters belong to any script
            script = unicodedata.name(character, "OTHER").split()[0].split("-")[0]
            counts["Han" if script == "CJK" else script.capitalize()] += count
    return {script: count / counts.total() for script, count in counts.most_common()}


def unknown_tokens(texts: Sequence[str], tokenizer: Tokenizer) -> dict[str, int]:
    """Return the ten most frequent out-of-vocabulary tokens of the texts."""
    counts = Counter(
        token
        for text in texts
        for token, id in zip(tokenizer.tokenize(text), tokenizer.encode(text), strict=True)
        if id == UNK
    )
    return dict(counts.most_common(10))
