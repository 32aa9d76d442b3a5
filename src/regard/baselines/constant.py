"""Baselines that ignore the source, or see one word of it at a time."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from typing_extensions import Self

from regard.baselines.baseline import StoredBaseline

MAX_WORDS = 50_000  # words with their own tag
Finite = Annotated[float, Field(allow_inf_nan=False)]


def most_frequent(values: Iterable[str]) -> str | None:
    """Return the most frequent value (ties: the first in alphabetical order); None without any."""
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value), default=None)


class MostFrequentLabel(StoredBaseline):
    """Predict the most frequent label of the training set."""

    name: ClassVar[str] = "most frequent label"
    kind: Literal["most_frequent_label"] = "most_frequent_label"
    label: str

    @classmethod
    def fit(cls, sources: Sequence[Any], targets: Sequence[Sequence[str]]) -> Self | None:
        """Return the baseline for examples with one or more labels."""
        label = most_frequent(label for labels in targets for label in labels)
        return None if label is None else cls(label=label)

    def predict(self, sources: Sequence[Any]) -> list[tuple[str, ...]]:
        """Return the same label for each source."""
        return [(self.label,)] * len(sources)


class MostFrequentTarget(StoredBaseline):
    """Predict the most frequent target text of the training set."""

    name: ClassVar[str] = "most frequent target"
    kind: Literal["most_frequent_target"] = "most_frequent_target"
    target: str

    @classmethod
    def fit(cls, sources: Sequence[Any], targets: Sequence[str]) -> Self | None:
        """Return the baseline for target texts."""
        target = most_frequent(targets)
        return None if target is None else cls(target=target)

    def predict(self, sources: Sequence[Any]) -> list[str]:
        """Return the same text for each source."""
        return [self.target] * len(sources)


class MostFrequentTag(StoredBaseline):
    """Predict the most frequent tag of the training set for every word."""

    name: ClassVar[str] = "most frequent tag"
    kind: Literal["most_frequent_tag"] = "most_frequent_tag"
    tag: str

    @classmethod
    def fit(cls, sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]]) -> Self | None:
        """Return the baseline for tagged sentences."""
        tag = most_frequent(tag for tags in targets for tag in tags)
        return None if tag is None else cls(tag=tag)

    def predict(self, sources: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        """Return the same tag for each word."""
        return [(self.tag,) * len(words) for words in sources]


class WordTags(StoredBaseline):
    """Predict the most frequent tag of each word; for unknown words, the most frequent tag.

    Words that have the most frequent tag are not stored. Of the others, the most frequent
    `MAX_WORDS` are stored.
    """

    name: ClassVar[str] = "most frequent tag per word"
    kind: Literal["word_tags"] = "word_tags"
    tag: str
    words: dict[str, str]

    @classmethod
    def fit(cls, sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]]) -> Self | None:
        """Return the baseline for tagged sentences."""
        default = most_frequent(tag for tags in targets for tag in tags)
        if default is None:
            return None
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for words, tags in zip(sources, targets, strict=True):
            for word, tag in zip(words, tags, strict=True):
                counts[word][tag] += 1
        order = sorted(counts, key=lambda word: (-counts[word].total(), word))
        best = ((word, most_frequent(counts[word])) for word in order)
        other = [(word, tag) for word, tag in best if tag is not None and tag != default]
        return cls(tag=default, words=dict(other[:MAX_WORDS]))

    def predict(self, sources: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        """Return the tag of each word."""
        return [tuple(self.words.get(word, self.tag) for word in words) for words in sources]


class MeanTarget(StoredBaseline):
    """Predict the mean of the training targets."""

    name: ClassVar[str] = "mean of the training targets"
    kind: Literal["mean_target"] = "mean_target"
    values: tuple[Finite, ...] = Field(min_length=1)

    @classmethod
    def fit(cls, sources: Sequence[Any], targets: Sequence[Sequence[float]]) -> Self | None:
        """Return the baseline for examples with one or more target numbers."""
        if not targets:
            return None
        return cls(values=tuple(np.array(targets, np.float64).mean(0).tolist()))

    def predict(self, sources: Sequence[Any]) -> list[tuple[float, ...]]:
        """Return the same numbers for each source."""
        return [self.values] * len(sources)


class CopySource(StoredBaseline):
    """Predict the source itself."""

    name: ClassVar[str] = "copying the source"
    kind: Literal["copy_source"] = "copy_source"

    @classmethod
    def fit(cls, sources: Sequence[str], targets: Sequence[str]) -> Self:
        """Return the baseline, which learns nothing."""
        return cls()

    def predict(self, sources: Sequence[str]) -> list[str]:
        """Return the sources."""
        return list(sources)
