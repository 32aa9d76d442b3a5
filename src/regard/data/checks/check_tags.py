"""The check of tagged sentences: what is there, what is odd."""

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
    """What was found in tagged sentences, as plain data."""

    sentences: int
    words: int
    forms: int  # different words
    characters: int  # distinct characters
    lengths: dict[int, int]
    labels: dict[str, int]  # tag to how often, most frequent first
    dev_sentences: int
    dev_words: int
    unseen_words: int  # words of dev that training never saw
    unseen_labels: dict[str, int]  # tags of dev that training never saw
    overlap: int  # dev sentences that are in train as well
    ambiguous: int  # words with several tags

    def summary(self) -> list[str]:
        return [
            f"train {self.sentences:,} sentences, {self.words:,} words ({self.forms:,} different), "
            f"{len(self.labels):,} tags; dev {self.dev_sentences:,} sentences, "
            f"{self.dev_words:,} words, {_share(self.unseen_words, self.dev_words)} never seen",
        ]

    def sections(self) -> list[list[str]]:
        rows = [
            ("train sentences", f"{self.sentences:,}"),
            ("train words", f"{self.words:,}, {self.forms:,} different"),
            ("characters", f"{self.characters:,} distinct"),
            *length_rows(self.lengths),
            ("words with several tags", f"{self.ambiguous:,}"),
            ("dev sentences", f"{self.dev_sentences:,}, {self.overlap:,} also in train"),
            ("dev words", f"{self.dev_words:,}"),
            ("never seen in train", _share(self.unseen_words, self.dev_words)),
        ]
        return [table(rows), label_lines("tag", self.labels)]


def check_tags(
    train: Sequence[Pair],
    dev: Sequence[Pair],
    sizes: tuple[int, int],
    knows: Callable[[str], bool],
) -> TagCheck:
    """The figures of train and dev."""
    labels = Counter(tag for pair in train for tag in pair.target)
    pairs = {both for pair in train for both in zip(pair.source, pair.target, strict=True)}
    several = Counter(word for word, _ in pairs)
    seen = {pair.source for pair in train}
    dev_words = [word for pair in dev for word in pair.source]
    strange = Counter(tag for pair in dev for tag in pair.target if tag not in labels)
    found = TagCheck(
        sentences=len(train),
        words=labels.total(),
        forms=sizes[0],
        characters=sizes[1],
        lengths=percentiles(len(pair.source) for pair in train),
        labels=dict(labels.most_common()),
        dev_sentences=len(dev),
        dev_words=len(dev_words),
        unseen_words=sum(not knows(word) for word in dev_words),
        unseen_labels=dict(strange.most_common()),
        overlap=sum(pair.source in seen for pair in dev),
        ambiguous=sum(count > 1 for count in several.values()),
    )
    found.warnings = label_warnings("tag", found.labels, found.unseen_labels)
    if len(dev) and found.overlap > 0.5 * len(dev):
        found.warnings.append(f"dev sentences that are in train as well: {found.overlap:,}")
    return found


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({part / max(1, whole):.1%})"
