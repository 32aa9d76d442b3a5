"""The nearest neighbor: the target of the most similar training source.

Similarity is the cosine of tf-idf vectors of words or of character trigrams.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from regard.baselines.baseline import Baseline

MAX_FEATURES = 1_000_000  # of all training sources; further sources are not used
MAX_SOURCES = 2_000  # more frequent features say little and are ignored
SECONDS = 2.0  # CPU time of `predict`
SECONDS_PER_SOURCE = 1e-3
CHECK_EVERY = 100  # sources between two checks of the time

Features = Callable[[str], list[str]]


class TooSlow(Exception):
    """A baseline exceeds its time limit."""


def words(text: str) -> list[str]:
    """Return the lowercased, whitespace-separated words of a text."""
    return text.lower().split()


def trigrams(text: str) -> list[str]:
    """Return the character trigrams of a text, with a space before and after it."""
    padded = f" {text} "
    return [padded[at : at + 3] for at in range(max(1, len(padded) - 2))]


class NearestNeighbor(Baseline):
    """Predict the target of the most similar training source (ties: the first one).

    If no feature of a source is known, predict the most frequent target. N training sources.
    starts: for each feature id, where its entries start; the last element is their number.
    rows, weights: for each entry, its training source and tf-idf weight.
    """

    name: ClassVar[str] = "nearest neighbor"

    def __init__(
        self,
        features: Features,
        targets: Sequence[Any],
        ids: dict[str, int],
        entries: tuple[np.ndarray, np.ndarray, np.ndarray],
    ) -> None:
        self.features, self.targets, self.ids = features, targets, ids
        owners, rows, counts = entries  # feature id, source and count of each entry
        order = np.argsort(owners, kind="stable")
        owners, self.rows, counts = owners[order], rows[order], counts[order]
        sources = np.bincount(owners, minlength=len(ids))  # that have this feature
        self.starts = np.concatenate([[0], np.cumsum(sources)])
        self.idf = np.log((1 + len(targets)) / (1 + sources)) + 1
        self.idf[sources > MAX_SOURCES] = 0.0
        weights = counts * self.idf[owners]
        norms = np.sqrt(np.bincount(self.rows, weights**2, minlength=len(targets)))
        self.weights = weights / np.maximum(norms[self.rows], 1e-12)
        self.fallback = Counter(targets).most_common(1)[0][0]

    @classmethod
    def fit(
        cls, features: Features, sources: Sequence[str], targets: Sequence[Any]
    ) -> "NearestNeighbor | None":
        """Return the neighbors of texts with these features. targets: texts, or label tuples."""
        ids: dict[str, int] = {}
        owners: list[int] = []
        rows: list[int] = []
        counts: list[int] = []
        total = used = 0
        for row, source in enumerate(sources):
            found = features(source)
            total += len(found)
            if total > MAX_FEATURES and row:
                break
            counted = Counter(found)
            owners += [ids.setdefault(feature, len(ids)) for feature in counted]
            rows += [row] * len(counted)
            counts += counted.values()
            used += 1
        if not ids:
            return None
        entries = (np.array(owners), np.array(rows), np.array(counts, np.float64))
        return cls(features, list(targets[:used]), ids, entries)

    def predict(self, sources: Sequence[str]) -> list[Any]:
        """Return the target of the nearest neighbor of each source.

        Raise TooSlow if this takes too long.
        """
        limit = max(SECONDS, SECONDS_PER_SOURCE * len(sources))
        start, found = time.thread_time(), []
        for number, source in enumerate(sources):
            if number % CHECK_EVERY == 0 and time.thread_time() - start > limit:
                raise TooSlow(f"more than {limit:g} s for {len(sources):,} examples")
            found.append(self._target(source))
        return found

    def _target(self, source: str) -> Any:
        scores = np.zeros(len(self.targets))
        for feature, count in Counter(self.features(source)).items():
            id = self.ids.get(feature)
            if id is None or not self.idf[id]:
                continue
            entries = slice(self.starts[id], self.starts[id + 1])
            scores[self.rows[entries]] += count * self.idf[id] * self.weights[entries]
        best = int(scores.argmax())
        return self.targets[best] if not math.isclose(scores[best], 0.0) else self.fallback
