"""How good are given labels: accuracy, F1, what is taken for what, and the worth of confidence.

F1 is a function of three counts a label: given and right, given, wanted. `Hits` holds them by
example, so that a draw of examples is counted as fast as all of them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.core.errors import UserError
from regard.metrics.numbers import Floats, Measured, check_examples, percent

Labels = Sequence[tuple[str, ...]]  # for each example its labels, in any order
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Hits:
    """For the right, the given and the wanted labels: of which example, and which label."""

    size: int  # how many examples there are
    labels: list[str]
    examples: tuple[Integers, ...]
    places: tuple[Integers, ...]  # in `labels`

    def count(self, times: Floats) -> Floats:
        """How many labels are right, given and wanted, (3, labels), if examples count `times`."""
        return np.stack(
            [
                np.bincount(places, weights=times[examples], minlength=len(self.labels))
                for examples, places in zip(self.examples, self.places, strict=True)
            ]
        )

    def table(self) -> list[dict[str, Any]]:
        """A row for each label, the most wanted first."""
        right, given, wanted = self.count(np.ones(self.size))
        order = sorted(range(len(self.labels)), key=lambda i: (-wanted[i], self.labels[i]))
        return [
            {
                "label": self.labels[i],
                "count": int(wanted[i]),
                "predicted": int(given[i]),
                "precision": percent(right[i], given[i]),
                "recall": percent(right[i], wanted[i]),
                "f1": percent(2 * right[i], given[i] + wanted[i]),
            }
            for i in order
        ]


def find_hits(
    right: Sequence[Iterable[str]], given: Sequence[Iterable[str]], wanted: Sequence[Iterable[str]]
) -> Hits:
    """The hits of lists with, for each example, the labels that are right, given and wanted."""
    sides = [[list(names) for names in side] for side in (right, given, wanted)]
    labels = sorted({name for side in sides for names in side for name in names})
    place = {label: index for index, label in enumerate(labels)}
    return Hits(
        len(wanted),
        labels,
        tuple(np.repeat(np.arange(len(side)), [len(names) for names in side]) for side in sides),
        tuple(
            np.array([place[name] for names in side for name in names], np.int64) for side in sides
        ),
    )


def measure_labels(predicted: Labels, wanted: Labels, several: bool | None = None) -> Measured:
    """The measures of all labels together, 0 to 100.

    One label each: `accuracy` and `macro_f1`, the mean F1 of the labels that were given or wanted.
    `several` labels (by default where an example has none or more than one, wanted or given):
    `f1` of all labels together, `macro_f1` and `subset_accuracy`, the examples with no label too
    many or too few. Where no label at all is given or wanted, F1 is 0, as in scikit-learn.
    """
    check_examples(predicted, wanted)
    several = _has_several(predicted, wanted) if several is None else several
    hits = _label_hits(predicted, wanted)
    same = [set(given) == set(right) for given, right in zip(predicted, wanted, strict=True)]
    whole = np.array(same, np.float64)

    def scores(times: Floats) -> dict[str, float]:
        counts = hits.count(times)
        macro, all_right = _macro_f1(counts), percent(float(times @ whole), float(times.sum()))
        if several:
            return {"f1": micro_f1(counts), "macro_f1": macro, "subset_accuracy": all_right}
        return {"accuracy": all_right, "macro_f1": macro}

    return Measured(scores, len(wanted))


def class_table(predicted: Labels, wanted: Labels) -> list[dict[str, Any]]:
    """For each label, the most wanted first, its counts, precision, recall and F1."""
    check_examples(predicted, wanted)
    return _label_hits(predicted, wanted).table()


def confusion(predicted: Labels, wanted: Labels, most: int = 30) -> dict[str, Any]:
    """How often each label was given (columns) where each was wanted (rows), the most wanted first.

    More than `most` labels: the rarest are joined, so that there are `most` with the last one,
    "others"; `others` in the answer says how many labels it stands for (so its
    own cell has right and wrong ones). One label each only.
    """
    check_examples(predicted, wanted)
    if _has_several(predicted, wanted):
        raise UserError("A confusion matrix needs exactly one label for each example.")
    given, right = ([names[0] for names in side] for side in (predicted, wanted))
    times_wanted, times_given = Counter(right), Counter(given)
    labels = sorted(
        {*given, *right}, key=lambda name: (-times_wanted[name], -times_given[name], name)
    )
    joined = len(labels) - most + 1 if len(labels) > most else 0
    kept = labels[: len(labels) - joined]
    place = {label: min(index, len(kept)) for index, label in enumerate(labels)}

    shown = [*kept, "others"] if joined else kept
    rows = np.zeros((len(shown), len(shown)), np.int64)
    np.add.at(rows, ([place[name] for name in right], [place[name] for name in given]), 1)
    return {"labels": shown, "rows": rows.tolist(), "others": joined}


def micro_f1(counts: Floats) -> float:
    """F1 of all labels together, from the counts of `Hits`."""
    right, given, wanted = counts.sum(axis=1)
    return percent(2 * right, given + wanted)


def calibration_error(confidences: Sequence[float], right: Sequence[bool], bins: int = 15) -> float:
    """The expected calibration error (Guo et al. 2017, equation 3), 0 to 100.

    The mean distance of confidence and accuracy, each bin weighted by its examples.
    """
    rows = reliability(confidences, right, bins)
    distances = sum(row["count"] * abs(row["accuracy"] - row["confidence"]) for row in rows)
    return float(distances / len(right))


def reliability(
    confidences: Sequence[float], right: Sequence[bool], bins: int = 10
) -> list[dict[str, Any]]:
    """Mean confidence and accuracy, 0 to 100, of the examples in each bin of confidence.

    The bins are equally wide, from `low` (not in it) to `high`; those without example are left out.
    """
    check_examples(confidences, right)
    shares, rights = np.asarray(confidences, np.float64), np.asarray(right, np.float64)
    places = np.clip(np.ceil(shares * bins).astype(np.int64) - 1, 0, bins - 1)
    rows = []
    for place in np.unique(places):
        inside = places == place
        row = {"low": 100 * float(place) / bins, "high": 100 * float(place + 1) / bins}
        row |= {"confidence": 100 * float(shares[inside].mean())}
        row |= {"accuracy": 100 * float(rights[inside].mean()), "count": int(inside.sum())}
        rows.append(row)
    return rows


def fit_temperature(logits: Floats, labels: Integers) -> float:
    """The T, 0.05 to 20, for which softmax(logits / T) gives the labels the most probability.

    `logits` is (examples, classes), `labels` (examples,). Guo et al. 2017, section 4.2.
    """
    check_examples(logits, labels)
    logits = np.asarray(logits, np.float64)
    logits = logits - logits.max(axis=1, keepdims=True)
    wanted = logits[np.arange(len(labels)), labels].sum()

    def slope(sharpness: float) -> float:
        weights = np.exp(sharpness * logits)
        return float(((weights * logits).sum(axis=1) / weights.sum(axis=1)).sum() - wanted)

    return _temperature(slope)


def fit_temperature_several(logits: Floats, wanted: Integers) -> float:
    """The same for sigmoid(logits / T) and several labels: `wanted` is 0 or 1, as `logits`."""
    check_examples(logits, wanted)
    logits = np.asarray(logits, np.float64)

    def slope(sharpness: float) -> float:
        shares = 0.5 + 0.5 * np.tanh(0.5 * sharpness * logits)  # the sigmoid, without overflow
        return float(((shares - wanted) * logits).sum())

    return _temperature(slope)


def _temperature(slope: Callable[[float], float]) -> float:
    """Bisects for the root of the slope of the loss, which rises with 1 / T: the loss is convex."""
    low, high = np.log(0.05), np.log(20.0)
    for _ in range(45):
        middle = (low + high) / 2
        if slope(float(np.exp(-middle))) > 0:
            low = middle  # still too sharp: T must be larger
        else:
            high = middle
    return float(np.exp((low + high) / 2))


def _macro_f1(counts: Floats) -> float:
    right, both = counts[0], counts[1] + counts[2]
    occurs = both > 0
    return 100 * float((2 * right[occurs] / both[occurs]).mean()) if occurs.any() else 0.0


def _label_hits(predicted: Labels, wanted: Labels) -> Hits:
    given, right = [set(names) for names in predicted], [set(names) for names in wanted]
    return find_hits([a & b for a, b in zip(given, right, strict=True)], given, right)


def _has_several(predicted: Labels, wanted: Labels) -> bool:
    return any(len(names) != 1 for names in chain(predicted, wanted))
