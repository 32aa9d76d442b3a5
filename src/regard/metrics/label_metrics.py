"""Metrics for predicted labels: accuracy, F1, the confusion matrix and calibration.

F1 is a function of three counts per label: correct, predicted and expected. `LabelHits` stores the
counted labels of each example, so scoring a bootstrap sample is as fast as scoring all examples.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.core.errors import UserError
from regard.metrics.numbers import Floats, WeightedScores, check_examples, percent

Labels = Sequence[tuple[str, ...]]  # the labels of each example, in any order
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LabelHits:
    """All correct, predicted and expected labels, as pairs of example index and label index."""

    num_examples: int
    labels: list[str]
    examples: tuple[Integers, ...]  # three arrays: of correct, predicted and expected labels
    label_ids: tuple[Integers, ...]  # the same, with indices into `labels`

    def count(self, weights: Floats) -> Floats:
        """Return the counts (3, labels) of correct, predicted and expected labels.

        weights: (examples,), the weight of each example.
        """
        return np.stack(
            [
                np.bincount(ids, weights=weights[examples], minlength=len(self.labels))
                for examples, ids in zip(self.examples, self.label_ids, strict=True)
            ]
        )

    def table(self) -> list[dict[str, Any]]:
        """Return counts, precision, recall and F1 per label, most frequent label first."""
        correct, predicted, expected = self.count(np.ones(self.num_examples))
        order = sorted(range(len(self.labels)), key=lambda i: (-expected[i], self.labels[i]))
        return [
            {
                "label": self.labels[i],
                "count": int(expected[i]),
                "predicted": int(predicted[i]),
                "precision": percent(correct[i], predicted[i]),
                "recall": percent(correct[i], expected[i]),
                "f1": percent(2 * correct[i], predicted[i] + expected[i]),
            }
            for i in order
        ]


def find_hits(
    correct: Sequence[Iterable[str]],
    y_pred: Sequence[Iterable[str]],
    y_true: Sequence[Iterable[str]],
) -> LabelHits:
    """Return `LabelHits` for the correct, predicted and expected labels of each example."""
    sides = [[list(names) for names in side] for side in (correct, y_pred, y_true)]
    labels = sorted({name for side in sides for names in side for name in names})
    ids = {label: id for id, label in enumerate(labels)}
    return LabelHits(
        len(y_true),
        labels,
        tuple(np.repeat(np.arange(len(side)), [len(names) for names in side]) for side in sides),
        tuple(
            np.array([ids[name] for names in side for name in names], np.int64) for side in sides
        ),
    )


def measure_labels(
    y_pred: Labels, y_true: Labels, multilabel: bool | None = None
) -> WeightedScores:
    """Return the metrics over all labels, from 0 to 100.

    - `accuracy` (single-label): fraction of examples with the correct label.
    - `f1` (multi-label): micro-averaged F1 over all labels.
    - `macro_f1`: mean F1 of the labels that are predicted or expected.
    - `subset_accuracy` (multi-label): fraction of examples with exactly the expected labels.

    F1 is 0 if no label is predicted or expected, as in scikit-learn. By default, data is
    multi-label if any example has no label or more than one.
    """
    check_examples(y_pred, y_true)
    multilabel = _is_multilabel(y_pred, y_true) if multilabel is None else multilabel
    hits = _label_hits(y_pred, y_true)
    equal = [set(one) == set(other) for one, other in zip(y_pred, y_true, strict=True)]
    all_correct = np.array(equal, np.float64)

    def scores(weights: Floats) -> dict[str, float]:
        counts = hits.count(weights)
        macro = _macro_f1(counts)
        accuracy = percent(float(weights @ all_correct), float(weights.sum()))
        if multilabel:
            return {"f1": micro_f1(counts), "macro_f1": macro, "subset_accuracy": accuracy}
        return {"accuracy": accuracy, "macro_f1": macro}

    return WeightedScores(scores, len(y_true))


def class_table(y_pred: Labels, y_true: Labels) -> list[dict[str, Any]]:
    """Return counts, precision, recall and F1 per label, most frequent reference label first."""
    check_examples(y_pred, y_true)
    return _label_hits(y_pred, y_true).table()


def confusion(y_pred: Labels, y_true: Labels, max_labels: int = 30) -> dict[str, Any]:
    """Return the confusion matrix: expected labels in rows, predicted labels in columns.

    The most frequent reference label comes first. With more than `max_labels` labels, the rarest
    ones are merged into a last label, "others". The key `others` is the number of merged labels.
    The diagonal cell of "others" counts correct and wrong predictions. Single-label only.
    """
    check_examples(y_pred, y_true)
    if _is_multilabel(y_pred, y_true):
        raise UserError("confusion matrix: expected exactly one label per example")
    predicted, expected = ([names[0] for names in side] for side in (y_pred, y_true))
    num_expected, num_predicted = Counter(expected), Counter(predicted)
    labels = sorted(
        {*predicted, *expected}, key=lambda name: (-num_expected[name], -num_predicted[name], name)
    )
    num_merged = len(labels) - max_labels + 1 if len(labels) > max_labels else 0
    kept = labels[: len(labels) - num_merged]
    index = {label: min(i, len(kept)) for i, label in enumerate(labels)}

    shown = [*kept, "others"] if num_merged else kept
    rows = np.zeros((len(shown), len(shown)), np.int64)
    np.add.at(rows, ([index[name] for name in expected], [index[name] for name in predicted]), 1)
    return {"labels": shown, "rows": rows.tolist(), "others": num_merged}


def micro_f1(counts: Floats) -> float:
    """Return micro-averaged F1, from the counts (3, labels) of `LabelHits.count`."""
    correct, predicted, expected = counts.sum(axis=1)
    return percent(2 * correct, predicted + expected)


def calibration_error(
    confidences: Sequence[float], correct: Sequence[bool], num_bins: int = 15
) -> float:
    """Return the expected calibration error (Guo et al. 2017, equation 3), 0 to 100.

    The error is the mean of |accuracy - confidence| over bins, weighted by bin size.
    """
    rows = reliability(confidences, correct, num_bins)
    distances = sum(row["count"] * abs(row["accuracy"] - row["confidence"]) for row in rows)
    return float(distances / len(correct))


def reliability(
    confidences: Sequence[float], correct: Sequence[bool], num_bins: int = 10
) -> list[dict[str, Any]]:
    """Return mean confidence and accuracy, 0 to 100, of the examples in each confidence bin.

    Bins have equal width. A bin contains confidences above `low`, up to `high`. Empty bins are
    omitted.
    """
    check_examples(confidences, correct)
    confidence, accuracy = np.asarray(confidences, np.float64), np.asarray(correct, np.float64)
    bins = np.clip(np.ceil(confidence * num_bins).astype(np.int64) - 1, 0, num_bins - 1)
    rows = []
    for bin in np.unique(bins):
        inside = bins == bin
        row = {"low": 100 * float(bin) / num_bins, "high": 100 * float(bin + 1) / num_bins}
        row |= {"confidence": 100 * float(confidence[inside].mean())}
        row |= {"accuracy": 100 * float(accuracy[inside].mean()), "count": int(inside.sum())}
        rows.append(row)
    return rows


def fit_temperature(logits: Floats, labels: Integers) -> float:
    """Return the temperature T that maximizes the likelihood of the labels (Guo et al. 2017, 4.2).

    Probabilities are softmax(logits / T), with T from 0.05 to 20. logits: (examples, classes).
    labels: (examples,), class indices.
    """
    check_examples(logits, labels)
    logits = np.asarray(logits, np.float64)
    logits = logits - logits.max(axis=1, keepdims=True)
    label_logits = logits[np.arange(len(labels)), labels].sum()

    def slope(sharpness: float) -> float:
        weights = np.exp(sharpness * logits)
        return float(((weights * logits).sum(axis=1) / weights.sum(axis=1)).sum() - label_logits)

    return _temperature(slope)


def fit_temperature_multilabel(logits: Floats, y_true: Integers) -> float:
    """Return the temperature T that maximizes the likelihood of multi-label references.

    Probabilities are sigmoid(logits / T), with T from 0.05 to 20. logits: (examples, labels).
    y_true: (examples, labels), 0 or 1.
    """
    check_examples(logits, y_true)
    logits = np.asarray(logits, np.float64)

    def slope(sharpness: float) -> float:
        p = 0.5 + 0.5 * np.tanh(0.5 * sharpness * logits)  # the sigmoid, without overflow
        return float(((p - y_true) * logits).sum())

    return _temperature(slope)


def _temperature(slope: Callable[[float], float]) -> float:
    """Return the temperature T of the minimum loss, by bisection.

    slope: derivative of the loss with respect to 1 / T, as a function of 1 / T. The loss is convex
    in 1 / T, so its minimum is where the slope is 0.
    """
    low, high = np.log(0.05), np.log(20.0)
    for _ in range(45):
        middle = (low + high) / 2
        if slope(float(np.exp(-middle))) > 0:
            low = middle  # still too sharp: T must be larger
        else:
            high = middle
    return float(np.exp((low + high) / 2))


def _macro_f1(counts: Floats) -> float:
    correct, both = counts[0], counts[1] + counts[2]
    occurs = both > 0
    return 100 * float((2 * correct[occurs] / both[occurs]).mean()) if occurs.any() else 0.0


def _label_hits(y_pred: Labels, y_true: Labels) -> LabelHits:
    predicted, expected = [set(names) for names in y_pred], [set(names) for names in y_true]
    correct = [one & other for one, other in zip(predicted, expected, strict=True)]
    return find_hits(correct, predicted, expected)


def _is_multilabel(y_pred: Labels, y_true: Labels) -> bool:
    return any(len(names) != 1 for names in chain(y_pred, y_true))
