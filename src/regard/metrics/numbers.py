"""How good are given numbers: R2 and mean errors. And what labels, spans and numbers share:
the check that answers and examples belong together, and the interval of any score.

A score is a function of how often each example counts: once for the score itself, as often as it
was drawn for its interval.
"""

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.core.errors import UserError

Numbers = Sequence[tuple[float, ...]]  # for each example its targets
Floats = npt.NDArray[np.float64]
Scorer = Callable[[Floats], dict[str, float]]  # of how often each example counts


@dataclass(frozen=True)
class Measured:
    """Some examples, and their scores as a function of how often each of them counts."""

    scorer: Scorer
    examples: int

    def scores(self) -> dict[str, float]:
        """The scores of all examples together."""
        return self.scorer(np.ones(self.examples))

    def intervals(self, samples: int = 1000, seed: int = 0) -> dict[str, tuple[float, float]]:
        """For each score, the bounds of the percentile bootstrap over examples."""
        return bootstrap(self.scorer, self.examples, samples, seed)


def measure_numbers(predicted: Numbers, wanted: Numbers) -> Measured:
    """`r2`, at most 1, and `rmse` and `mae` in the unit of the data; means over the targets.

    `r2` is 1 - (squared errors) / (squared distances from the mean of the wanted numbers), so 0 is
    what the mean itself would reach. A target that never changes gives 1 if every answer is right,
    else 0, as in scikit-learn.
    """
    given, right = _arrays(predicted, wanted)

    def scores(times: Floats) -> dict[str, float]:
        measured = _by_target(given, right, times)
        return {name: float(values.mean()) for name, values in measured.items()}

    return Measured(scores, len(wanted))


def number_table(predicted: Numbers, wanted: Numbers, names: Sequence[str]) -> list[dict[str, Any]]:
    """For each target its name and measures."""
    given, right = _arrays(predicted, wanted)
    if len(names) != right.shape[1]:
        raise UserError(f"{right.shape[1]} targets need as many names, {len(names)} came.")
    measured = _by_target(given, right, np.ones(len(right)))
    return [
        {"target": name} | {key: float(values[place]) for key, values in measured.items()}
        for place, name in enumerate(names)
    ]


def bootstrap(
    scores: Scorer, examples: int, samples: int, seed: int
) -> dict[str, tuple[float, float]]:
    """The bounds that hold 95 % of the scores of examples drawn with replacement (Efron 1979).

    A name left out in a draw, since nothing was drawn that it measures, is judged by the others.
    """
    generator = np.random.default_rng(seed)
    drawn: dict[str, list[float]] = {}
    for _ in range(samples):
        times = np.bincount(generator.integers(0, examples, examples), minlength=examples)
        for name, value in scores(times.astype(np.float64)).items():
            drawn.setdefault(name, []).append(value)
    bounds = {name: np.percentile(values, [2.5, 97.5]) for name, values in drawn.items()}
    return {name: (float(low), float(high)) for name, (low, high) in bounds.items()}


def check_examples(predicted: Sized, wanted: Sized) -> None:
    """Says what is wrong where nothing came or answers and examples do not belong together."""
    if not len(wanted) and not len(predicted):
        raise UserError("There is nothing to score: no example was given.")
    if len(predicted) != len(wanted):
        raise UserError(
            f"Each example needs one answer: {len(predicted)} answers came for "
            f"{len(wanted)} examples."
        )


def percent(part: float, whole: float) -> float:
    """100 part / whole; of nothing it is 0, as in scikit-learn."""
    return 100 * float(part) / float(whole) if whole else 0.0


def _by_target(given: Floats, right: Floats, times: Floats) -> dict[str, Floats]:
    """Each measure of each target, if the examples count `times`."""
    drawn, weights = times > 0, times / times.sum()
    constant = np.ptp(right[drawn], axis=0) == 0
    squares = weights @ (given - right) ** 2
    spread = weights @ (right - weights @ right) ** 2
    r2 = 1 - squares / np.where(constant, 1.0, spread)
    return {
        "r2": np.where(constant, (squares == 0).astype(np.float64), r2),
        "rmse": np.sqrt(squares),
        "mae": weights @ np.abs(given - right),
    }


def _arrays(predicted: Numbers, wanted: Numbers) -> tuple[Floats, Floats]:
    """Both as (examples, targets)."""
    check_examples(predicted, wanted)
    count = len(wanted[0])
    for number, (given, right) in enumerate(zip(predicted, wanted, strict=True), start=1):
        if not len(given) == len(right) == count:
            raise UserError(
                f"Example {number}: {count} numbers expected, as in the first example; "
                f"{len(right)} are wanted and {len(given)} were given."
            )
    return np.array(predicted, np.float64), np.array(wanted, np.float64)
