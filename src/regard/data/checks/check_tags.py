"""Check tagged sentences before training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from regard.data.checks.check_frame import (
    DataCheck,
    label_lines,
    label_warnings,
    length_rows,
    table,
)
from regard.data.checks.side_stats import percentiles
from regard.data.reading.read import Pair


@dataclass
class TagCheck(DataCheck):
    """The result of checking tagged sentences."""

    sentences: int
    words: int
    distinct_words: int
    distinct_characters: int
    lengths: dict[int, int]  # percentile to words per sentence
    labels: dict[str, int]  # tag to count, most frequent first
    dev_sentences: int
    dev_words: int
    oov_words: int  # dev words that never occur in train
    unseen_labels: dict[str, int]  # dev tags that never occur in train
    overlap: int  # dev sentences that also occur in train
    ambiguous: int  # words with several tags

    def summary(self) -> list[str]:
        return [
            f"train {self.sentences:,} sentences, {self.words:,} words "
            f"({self.distinct_words:,} distinct), {len(self.labels):,} tags; "
            f"dev {self.dev_sentences:,} sentences, "
            f"{self.dev_words:,} words, {_fraction(self.oov_words, self.dev_words)} unknown",
        ]

    def sections(self) -> list[list[str]]:
        rows = [
            ("train sentences", f"{self.sentences:,}"),
            ("train words", f"{self.words:,}, {self.distinct_words:,} distinct"),
            ("characters", f"{self.distinct_characters:,} distinct"),
            *length_rows(self.lengths),
            ("words with several tags", f"{self.ambiguous:,}"),
            ("dev sentences", f"{self.dev_sentences:,}, {self.overlap:,} also in train"),
            ("dev words", f"{self.dev_words:,}"),
            ("unknown words in dev", _fraction(self.oov_words, self.dev_words)),
        ]
        return [table(rows), label_lines("tag", self.labels)]


def check_tags(
    train: Sequence[Pair],
    dev: Sequence[Pair],
    sizes: tuple[int, int],
    knows: Callable[[str], bool],
) -> TagCheck:
    """Check the training and dev sentences.

    sizes: number of words and of characters in the vocabularies. knows: returns whether a word is
    in the vocabulary.
    """
    labels = Counter(tag for pair in train for tag in pair.target)
    pairs = {both for pair in train for both in zip(pair.source, pair.target, strict=True)}
    tags_of_word = Counter(word for word, _ in pairs)
    seen = {pair.source for pair in train}
    dev_words = [word for pair in dev for word in pair.source]
    unseen = Counter(tag for pair in dev for tag in pair.target if tag not in labels)
    found = TagCheck(
        sentences=len(train),
        words=labels.total(),
        distinct_words=sizes[0],
        distinct_characters=sizes[1],
        lengths=percentiles(len(pair.source) for pair in train),
        labels=dict(labels.most_common()),
        dev_sentences=len(dev),
        dev_words=len(dev_words),
        oov_words=sum(not knows(word) for word in dev_words),
        unseen_labels=dict(unseen.most_common()),
        overlap=sum(pair.source in seen for pair in dev),
        ambiguous=sum(count > 1 for count in tags_of_word.values()),
    )
    found.warnings = label_warnings("tag", found.labels, found.unseen_labels)
    if len(dev) and found.overlap > 0.5 * len(dev):
        found.warnings.append(f"{found.overlap:,} dev sentences also occur in train (data leakage)")
    return found


def _fraction(part: int, total: int) -> str:
    return f"{part:,} ({part / max(1, total):.1%})"
