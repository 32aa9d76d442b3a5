"""Check labeled examples and regression data before training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.data.checks.check_frame import (
    DataCheck,
    MediaStats,
    label_lines,
    label_warnings,
    length_rows,
    table,
)
from regard.data.checks.side_stats import percentiles
from regard.data.reading.read import Pair


@dataclass
class LabelCheck(DataCheck):
    """The result of checking labeled examples."""

    examples: int
    unit: str  # plural noun for sources, such as texts
    lengths: dict[int, int]  # percentile to characters per text or numbers per vector
    labels: dict[str, int]
    multilabel: int  # examples with several labels or none
    contradictions: int  # sources with different labels
    duplicates: int
    dev_examples: int
    overlap: int
    unseen_labels: dict[str, int]
    unknown: int  # dev examples with out-of-vocabulary tokens

    def summary(self) -> list[str]:
        first, count = next(iter(self.labels.items()))
        return [
            f"train {self.examples:,} {self.unit}, {len(self.labels):,} labels, most frequent: "
            f"{first} ({count / max(1, sum(self.labels.values())):.1%}); dev {self.dev_examples:,}",
        ]

    def sections(self) -> list[list[str]]:
        rows = [
            (f"train {self.unit}", f"{self.examples:,}"),
            *(self.media.rows() if self.media else length_rows(self.lengths)),
            ("several or no labels", f"{self.multilabel:,}"),
            ("duplicates", f"{self.duplicates:,}"),
            ("contradictory labels", f"{self.contradictions:,} {self.unit}"),
            (f"dev {self.unit}", f"{self.dev_examples:,}, {self.overlap:,} also in train"),
            ("dev with unknown tokens", f"{self.unknown:,}"),
        ]
        return [table(rows), label_lines("label", self.labels)]


def check_labels(
    train: Sequence[Pair],
    dev: Sequence[Pair],
    unknown: Callable[[Any], tuple[str, ...]],
    unit: str,
    media: MediaStats | None = None,
) -> LabelCheck:
    """Check labeled training and dev examples.

    unknown: returns the out-of-vocabulary tokens of a source. unit: plural noun for sources.
    media: statistics of sources in files, if they are.
    """
    labels = Counter(label for pair in train for label in pair.target)
    targets_of: dict[Any, set[Any]] = {}
    for pair in train:
        targets_of.setdefault(pair.source, set()).add(pair.target)
    unseen = Counter(label for pair in dev for label in pair.target if label not in labels)
    found = LabelCheck(
        examples=len(train),
        unit=unit,
        media=media,
        lengths=percentiles(len(pair.source) for pair in train),
        labels=dict(labels.most_common()),
        multilabel=sum(len(pair.target) != 1 for pair in train),
        contradictions=sum(len(targets) > 1 for targets in targets_of.values()),
        duplicates=len(train) - sum(len(targets) for targets in targets_of.values()),
        dev_examples=len(dev),
        overlap=sum(pair.source in targets_of for pair in dev),
        unseen_labels=dict(unseen.most_common()),
        unknown=sum(bool(unknown(pair.source)) for pair in dev),
    )
    found.warnings = label_warnings("label", found.labels, found.unseen_labels)
    if found.contradictions:
        found.warnings.append(f"{found.contradictions:,} {found.unit} occur with different labels")
    found.warnings += _overlap(found)
    return found


@dataclass
class NumberCheck(DataCheck):
    """The result of checking regression data."""

    examples: int
    unit: str
    lengths: dict[int, int]
    dev_examples: int
    overlap: int
    targets: list[dict[str, float]]  # mean, std, min, max of each target

    def summary(self) -> list[str]:
        return [
            f"train {self.examples:,} {self.unit}, dev {self.dev_examples:,}",
            *self._targets(),
        ]

    def _targets(self) -> list[str]:
        return [
            f"target {number}: mean {t['mean']:.4g}, std {t['std']:.4g}, "
            f"min {t['min']:.4g}, max {t['max']:.4g}"
            for number, t in enumerate(self.targets, 1)
        ]

    def sections(self) -> list[list[str]]:
        rows = [
            (f"train {self.unit}", f"{self.examples:,}"),
            *(self.media.rows() if self.media else length_rows(self.lengths)),
            (f"dev {self.unit}", f"{self.dev_examples:,}, {self.overlap:,} also in train"),
        ]
        return [table(rows), self._targets()]


def check_numbers(
    train: Sequence[Pair], dev: Sequence[Pair], unit: str, media: MediaStats | None = None
) -> NumberCheck:
    """Check the training and dev set of a regression task.

    unit: plural noun for sources. media: statistics of sources in files, if they are.
    """
    numbers = np.array([pair.target for pair in train], np.float64)
    seen = {pair.source for pair in train}
    found = NumberCheck(
        examples=len(train),
        unit=unit,
        media=media,
        lengths=percentiles(len(pair.source) for pair in train),
        dev_examples=len(dev),
        overlap=sum(pair.source in seen for pair in dev),
        targets=[
            {
                "mean": float(column.mean()),
                "std": float(column.std()),
                "min": float(column.min()),
                "max": float(column.max()),
            }
            for column in numbers.T
        ],
    )
    far = np.abs(numbers - numbers.mean(0)) > 8 * np.maximum(numbers.std(0), 1e-30)
    if far.any():
        first = train[int(far.any(1).argmax())].line
        found.warnings.append(
            f"{int(far.any(1).sum()):,} targets more than 8 standard deviations from the mean "
            f"(first: line {first}); huber and mae are more robust"
        )
    found.warnings += _overlap(found)
    return found


def _overlap(found: LabelCheck | NumberCheck) -> list[str]:
    """Return warnings about the sources, one of them if dev examples also occur in train."""
    if found.media:
        return found.media.warnings()
    count = f"{found.overlap:,} of {found.dev_examples:,}"
    warning = f"{count} dev {found.unit} also occur in train (data leakage)"
    return [warning] if found.overlap else []
