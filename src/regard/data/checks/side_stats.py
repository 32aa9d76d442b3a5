"""One side of the data, source or target, in figures: lengths, characters, unknowns, oddities."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from regard.data.checks.survey import IssueCount, SideSurvey
from regard.data.tensors.special import UNK
from regard.data.tokenizers.tokenizer import Tokenizer

SHARES = (50, 90, 99, 100)
RARE = 2  # a character that occurs at most so often is rare


@dataclass
class SideStats:
    """The figures of one side; texts are counted in train, unknowns in dev."""

    kind: str
    vocab_size: int
    lengths: dict[int, int]  # so many in a hundred texts -> are at most so long, in tokens
    characters: int
    scripts: dict[str, float]  # share of the letters, largest first
    rare: dict[str, int]  # characters seen only once or twice
    empty: IssueCount
    edges: IssueCount  # white space at an end
    double_spaces: IssueCount
    control: IssueCount
    replacement: IssueCount  # U+FFFD
    decomposed: IssueCount  # not in NFC
    dev_tokens: int
    unknown_tokens: int
    unknown_examples: int
    unknown: dict[str, int]  # the most frequent ones


def measure_side(
    survey: SideSurvey, lengths: np.ndarray, dev: Sequence[str], tokenizer: Tokenizer
) -> SideStats:
    """The figures of the train texts, which were surveyed, and whose lengths are given; and dev."""
    characters = survey.characters
    encoded = tokenizer.encode_all(dev)
    unknown = [text for text, ids in zip(dev, encoded, strict=True) if UNK in ids]
    return SideStats(
        kind=tokenizer.kind,
        vocab_size=len(tokenizer),
        lengths=percentiles(lengths),
        characters=len(characters),
        scripts=scripts(characters),
        rare={mark: count for mark, count in characters.items() if count <= RARE},
        **survey.odd,
        dev_tokens=sum(map(len, encoded)),
        unknown_tokens=sum(ids.count(UNK) for ids in encoded),
        unknown_examples=len(unknown),
        unknown=unknown_tokens(unknown, tokenizer),
    )


def percentiles(lengths: Iterable[int] | np.ndarray) -> dict[int, int]:
    """For each share of 100: the length that so many texts do not exceed (nearest rank)."""
    found = lengths if isinstance(lengths, np.ndarray) else np.fromiter(lengths, np.int64)
    if not len(found):
        return dict.fromkeys(SHARES, 0)
    up_to = np.cumsum(np.bincount(found))  # texts that are at most so long
    ranks = {share: -(-share * len(found) // 100) for share in SHARES}
    return {share: int(np.searchsorted(up_to, rank)) for share, rank in ranks.items()}


def scripts(characters: Counter[str]) -> dict[str, float]:
    """The share of each script among the letters, by the first word of their Unicode names."""
    counts: Counter[str] = Counter()
    for character, count in characters.items():
        if (
            character.isalpha() and unicodedata.category(character) != "Lm"
        ):  # modifiers suit any script
            script = unicodedata.name(character, "OTHER").split()[0].split("-")[0]
            counts["Han" if script == "CJK" else script.capitalize()] += count
    return {script: count / counts.total() for script, count in counts.most_common()}


def unknown_tokens(texts: Sequence[str], tokenizer: Tokenizer) -> dict[str, int]:
    """The tokens of the texts that the vocabulary lacks, the ten most frequent."""
    counts = Counter(
        token
        for text in texts
        for token, id in zip(tokenizer.tokenize(text), tokenizer.encode(text), strict=True)
        if id == UNK
    )
    return dict(counts.most_common(10))
