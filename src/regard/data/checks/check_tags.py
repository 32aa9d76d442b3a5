"""The check of tagged sentences and of labelled texts: what is there, what is odd."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

from regard.data.checks.side_stats import percentiles
from regard.data.reading.read import Pair

SHOWN = 12
RARE = 5  # a label with fewer examples can hardly be learnt


@dataclass
class TagCheck:
    """What was found in tagged sentences, as plain data."""

    sentences: int
    words: int
    forms: int  # different words
    letters: int  # different letters
    lengths: dict[int, int]
    labels: dict[str, int]  # tag to how often, most frequent first
    dev_sentences: int
    dev_words: int
    unseen_words: int  # words of dev that training never saw
    unseen_labels: dict[str, int]  # tags of dev that training never saw
    overlap: int  # dev sentences that are in train as well
    ambiguous: int  # words with several tags
    warnings: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        """All of it, ready for JSON."""
        return asdict(self)

    def short(self) -> list[str]:
        """What matters during training."""
        return [
            f"train {self.sentences:,} sentences, {self.words:,} words ({self.forms:,} different), "
            f"{len(self.labels):,} tags; dev {self.dev_sentences:,} sentences, "
            f"{self.dev_words:,} words, {_share(self.unseen_words, self.dev_words)} never seen",
            *(f"! {warning}" for warning in self.warnings),
        ]

    def lines(self) -> list[str]:
        """The full report as plain text, warnings first."""
        warnings = [f"! {warning}" for warning in self.warnings] or ["nothing odd was found"]
        rows = [
            ("train sentences", f"{self.sentences:,}"),
            ("train words", f"{self.words:,}, {self.forms:,} different"),
            ("letters", f"{self.letters:,} different"),
            *length_rows(self.lengths),
            ("words with several tags", f"{self.ambiguous:,}"),
            ("dev sentences", f"{self.dev_sentences:,}, {self.overlap:,} also in train"),
            ("dev words", f"{self.dev_words:,}"),
            ("never seen in train", _share(self.unseen_words, self.dev_words)),
        ]
        return [*warnings, "", *table(rows), "", *label_lines("tag", self.labels)]


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
        letters=sizes[1],
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


def label_warnings(name: str, labels: dict[str, int], strange: dict[str, int]) -> list[str]:
    """What is odd about labels."""
    warnings = []
    if strange:
        first = ", ".join(f"{label} ({count:,})" for label, count in list(strange.items())[:SHOWN])
        warnings.append(f"{name}s in dev that training never saw, always wrong: {first}")
    rare = [label for label, count in labels.items() if count < RARE]
    if rare:
        some = ", ".join(rare[:SHOWN]) + (" ..." if len(rare) > SHOWN else "")
        warnings.append(f"{name}s with fewer than {RARE} examples: {some}")
    return warnings


def label_lines(name: str, labels: dict[str, int]) -> list[str]:
    """A line with a bar for each label, most frequent first."""
    total = max(1, sum(labels.values()))
    most = max(labels.values(), default=1)
    width = min(24, max((len(label) for label in labels), default=1))
    lines = [f"{name:<{width}}  {'count':>10}  share"]
    for label, count in list(labels.items())[:40]:
        bar = "#" * max(1, round(30 * count / most)) if count else ""
        lines.append(f"{label[:width]:<{width}}  {count:>10,}  {count / total:6.1%}  {bar}")
    if len(labels) > 40:
        lines.append(f"and {len(labels) - 40:,} more")
    return lines


def length_rows(lengths: dict[int, int]) -> list[tuple[str, str]]:
    """The lengths, as rows of a table."""
    names = ("length: half up to", "90 % up to", "99 % up to", "longest")
    return [(name, f"{n:,}") for name, n in zip(names, lengths.values(), strict=True)]


def table(rows: list[tuple[str, str]]) -> list[str]:
    """Names and values in two columns."""
    return [f"{name:<25}{value}" for name, value in rows]


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({part / max(1, whole):.1%})"
