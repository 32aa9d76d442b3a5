"""Metrics for predicted numbers (R2, RMSE, MAE), and bootstrap intervals of any score.

Scores are functions of example weights. With all weights 1, they are the scores of the data. A
bootstrap sample weights each example by the number of times it was sampled.
"""

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.core.errors import UserError

Numbers = Sequence[tuple[float, ...]]  # the targets of each example
Floats = npt.NDArray[np.float64]
Scorer = Callable[[Floats], dict[str, float]]  # maps example weights (examples,) to scores


@dataclass(frozen=True)
class WeightedScores:
    """Scores by name, as a function of the weight of each example."""

    scorer: Scorer
    num_examples: int

    def scores(self) -> dict[str, float]:
        """Return the scores with all weights 1."""
        return self.scorer(np.ones(self.num_examples))

    def intervals(self, samples: int = 1000, seed: int = 0) -> dict[str, tuple[float, float]]:
        """Return the 95 % percentile bootstrap interval of each score."""
        return bootstrap(self.scorer, self.num_examples, samples, seed)


def measure_numbers(y_pred: Numbers, y_true: Numbers) -> WeightedScores:
    """Return `r2`, `rmse` and `mae`, each averaged over targets.

    `r2` is 1 - (squared errors) / (squared distances of y_true from its mean). It is at most 1, and
    predicting the mean scores 0. A constant target scores 1 if every prediction is correct,
    otherwise 0, as in scikit-learn. `rmse` and `mae` have the unit of the data.
    """
    predicted, expected = _arrays(y_pred, y_true)

    def scores(weights: Floats) -> dict[str, float]:
        by_target = _scores_by_target(predicted, expected, weights)
        return {name: float(values.mean()) for name, values in by_target.items()}

    return WeightedScores(scores, len(y_true))


def number_table(y_pred: Numbers, y_true: Numbers, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return one row per target: its name, `r2`, `rmse` and `mae`."""
    predicted, expected = _arrays(y_pred, y_true)
    if len(names) != expected.shape[1]:
        raise UserError(f"expected {expected.shape[1]} target names, found {len(names)}")
    by_target = _scores_by_target(predicted, expected, np.ones(len(expected)))
    return [
        {"target": name} | {key: float(values[i]) for key, values in by_target.items()}
        for i, name in enumerate(names)
    ]


def bootstrap(
    scores: Scorer, num_examples: int, samples: int, seed: int
) -> dict[str, tuple[float, float]]:
    """Return the interval that contains 95 % of the scores of bootstrap samples (Efron 1979).

    Some samples may lack a score: without unknown words, there is no `oov_accuracy`. The interval
    is then estimated from the other samples.
    """
    generator = np.random.default_rng(seed)
    resampled: dict[str, list[float]] = {}
    for _ in range(samples):
        rows = generator.integers(0, num_examples, num_examples)
        weights = np.bincount(rows, minlength=num_examples)
        for name, value in scores(weights.astype(np.float64)).items():
            resampled.setdefault(name, []).append(value)
    bounds = {name: np.percentile(values, [2.5, 97.5]) for name, values in resampled.items()}
    return {name: (float(low), float(high)) for name, (low, high) in bounds.items()}


def check_examples(y_pred: Sized, y_true: Sized) -> None:
    """Raise UserError if there are no examples, or not exactly one prediction per example."""
    if not len(y_true) and not len(y_pred):
        raise UserError("no examples to score")
    if len(y_pred) != len(y_true):
        raise UserError(
            f"expected one prediction per example, found {len(y_pred)} predictions for "
            f"{len(y_true)} examples"
        )


def percent(part: float, total: float) -> float:
    """Return 100 part / total, or 0 if the total is 0, as in scikit-learn."""
    return 100 * float(part) / float(total) if total else 0.0


def _scores_by_target(predicted: Floats, expected: Floats, weights: Floats) -> dict[str, Floats]:
    """Return each metric as an array (targets,). weights: (examples,)."""
    sampled, weights = weights > 0, weights / weights.sum()
    constant = np.ptp(expected[sampled], axis=0) == 0
    squares = weights @ (predicted - expected) ** 2
    variance = weights @ (expected - weights @ expected) ** 2
    r2 = 1 - squares / np.where(constant, 1.0, variance)
    return {
        "r2": np.where(constant, (squares == 0).astype(np.float64), r2),
        "rmse": np.sqrt(squares),
        "mae": weights @ np.abs(predicted - expected),
    }


def _arrays(y_pred: Numbers, y_true: Numbers) -> tuple[Floats, Floats]:
    """Return y_pred and y_true as arrays (examples, targets); raise UserError if lengths differ."""
    check_examples(y_pred, y_true)
    count = len(y_true[0])
    for number, (predicted, expected) in enumerate(zip(y_pred, y_true, strict=True), start=1):
        if not len(predicted) == len(expected) == count:
            raise UserError(
                f"example {number}: expected {count} numbers as in the first example, "
                f"found {len(expected)} targets and {len(predicted)} predictions"
            )
    return np.array(y_pred, np.float64), np.array(y_true, np.float64)
