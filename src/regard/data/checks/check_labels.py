"""The check of examples with one answer each: labels or numbers, of texts or of vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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
class LabelCheck(DataCheck):
    """What was found in labeled examples, as plain data."""

    examples: int
    what: str  # texts or vectors
    lengths: dict[int, int]  # characters of a text, numbers of a vector
    labels: dict[str, int]
    several: int  # examples with several labels, or none
    contradictions: int  # sources that occur with different labels
    duplicates: int
    dev_examples: int
    overlap: int
    unseen_labels: dict[str, int]
    unknown: int  # dev examples with a token that training never saw

    def summary(self) -> list[str]:
        first, count = next(iter(self.labels.items()))
        return [
            f"train {self.examples:,} {self.what}, {len(self.labels):,} labels, most frequent: "
            f"{first} ({count / max(1, sum(self.labels.values())):.1%}); dev {self.dev_examples:,}",
        ]

    def sections(self) -> list[list[str]]:
        rows = [
            (f"train {self.what}", f"{self.examples:,}"),
            *length_rows(self.lengths),
            ("several labels, or none", f"{self.several:,}"),
            ("repeated", f"{self.duplicates:,}"),
            ("different labels", f"{self.contradictions:,} {self.what} that occur again"),
            (f"dev {self.what}", f"{self.dev_examples:,}, {self.overlap:,} also in train"),
            ("with unknown tokens", f"{self.unknown:,} of dev"),
        ]
        return [table(rows), label_lines("label", self.labels)]


def check_labels(
    train: Sequence[Pair], dev: Sequence[Pair], unknown: Callable[[Any], tuple[str, ...]]
) -> LabelCheck:
    """The figures of train and dev."""
    labels = Counter(label for pair in train for label in pair.target)
    answers: dict[Any, set[Any]] = {}
    for pair in train:
        answers.setdefault(pair.source, set()).add(pair.target)
    strange = Counter(label for pair in dev for label in pair.target if label not in labels)
    found = LabelCheck(
        examples=len(train),
        what="texts" if isinstance(train[0].source, str) else "vectors",
        lengths=percentiles(len(pair.source) for pair in train),
        labels=dict(labels.most_common()),
        several=sum(len(pair.target) != 1 for pair in train),
        contradictions=sum(len(targets) > 1 for targets in answers.values()),
        duplicates=len(train) - sum(len(targets) for targets in answers.values()),
        dev_examples=len(dev),
        overlap=sum(pair.source in answers for pair in dev),
        unseen_labels=dict(strange.most_common()),
        unknown=sum(bool(unknown(pair.source)) for pair in dev),
    )
    found.warnings = label_warnings("label", found.labels, found.unseen_labels)
    if found.contradictions:
        found.warnings.append(
            f"{found.what} that occur with different labels: {found.contradictions:,}"
        )
    found.warnings += _overlap(found)
    return found


@dataclass
class NumberCheck(DataCheck):
    """What was found in examples with numbers as answers, as plain data."""

    examples: int
    what: str
    lengths: dict[int, int]
    dev_examples: int
    overlap: int
    targets: list[dict[str, float]]  # of each number: mean, deviation, least, greatest

    def summary(self) -> list[str]:
        return [
            f"train {self.examples:,} {self.what}, dev {self.dev_examples:,}",
            *self._targets(),
        ]

    def _targets(self) -> list[str]:
        return [
            f"target {number}: mean {t['mean']:.4g}, deviation {t['deviation']:.4g}, from "
            f"{t['least']:.4g} to {t['greatest']:.4g}"
            for number, t in enumerate(self.targets, 1)
        ]

    def sections(self) -> list[list[str]]:
        rows = [
            (f"train {self.what}", f"{self.examples:,}"),
            *length_rows(self.lengths),
            (f"dev {self.what}", f"{self.dev_examples:,}, {self.overlap:,} also in train"),
        ]
        return [table(rows), self._targets()]


def check_numbers(train: Sequence[Pair], dev: Sequence[Pair]) -> NumberCheck:
    """The figures of train and dev."""
    numbers = np.array([pair.target for pair in train], np.float64)
    seen = {pair.source for pair in train}
    found = NumberCheck(
        examples=len(train),
        what="texts" if isinstance(train[0].source, str) else "vectors",
        lengths=percentiles(len(pair.source) for pair in train),
        dev_examples=len(dev),
        overlap=sum(pair.source in seen for pair in dev),
        targets=[
            {
                "mean": float(column.mean()),
                "deviation": float(column.std()),
                "least": float(column.min()),
                "greatest": float(column.max()),
            }
            for column in numbers.T
        ],
    )
    far = np.abs(numbers - numbers.mean(0)) > 8 * np.maximum(numbers.std(0), 1e-30)
    if far.any():
        first = train[int(far.any(1).argmax())].line
        found.warnings.append(
            f"answers more than 8 deviations from the mean: {int(far.any(1).sum()):,} (first: "
            f"line {first}); loss huber or mae minds them less"
        )
    found.warnings += _overlap(found)
    return found


def _overlap(found: LabelCheck | NumberCheck) -> list[str]:
    """What is said of dev examples that are in train."""
    count = f"{found.overlap:,} of {found.dev_examples:,}"
    return [f"dev {found.what} that are in train as well: {count}"] if found.overlap else []
