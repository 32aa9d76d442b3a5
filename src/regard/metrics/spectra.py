"""Metrics of sounds as log-mel features: distances along the best alignment in time.

S and T windows of two sounds, F bands, C cepstral coefficients.
"""

import math
from collections.abc import Sequence

import numpy as np

from regard.metrics.numbers import Floats, WeightedScores, check_examples

COEFFICIENTS = 13  # after the first one, which is the loudness
DECIBELS = 10.0 / math.log(10.0)


def measure_sounds(
    predicted: Sequence[np.ndarray], expected: Sequence[np.ndarray], truncated: Sequence[bool]
) -> WeightedScores:
    """Return `mcd`, `duration_error` and `stop_errors` of log-mel features (S, F).

    `mcd` is the mean mel-cepstral distortion in dB. `duration_error` is the mean of |S - T| / T, in
    percent. `stop_errors` is the percentage of outputs that reached their maximum length.
    """
    check_examples(predicted, expected)
    pairs = list(zip(predicted, expected, strict=True))
    distances = np.array([distortion(one, other) for one, other in pairs])
    durations = np.array([abs(len(one) - len(other)) / len(other) for one, other in pairs])
    stops = np.asarray(truncated, np.float64)

    def scores(weights: Floats) -> dict[str, float]:
        shares = weights / weights.sum()
        return {
            "mcd": float(shares @ distances),
            "duration_error": 100 * float(shares @ durations),
            "stop_errors": 100 * float(shares @ stops),
        }

    return WeightedScores(scores, len(pairs))


def cepstrum(features: np.ndarray) -> np.ndarray:
    """Return the coefficients (S, C) 1 to COEFFICIENTS of log-mel features (S, F).

    The log amplitude, half of the log power, is c_0 + sum_d c_d cos(pi d (f + 1/2) / F).
    """
    bands = features.shape[1]
    orders = np.arange(1, min(COEFFICIENTS, bands - 1) + 1)
    cosines = np.cos(np.pi * np.outer(np.arange(bands) + 0.5, orders) / bands)  # (F, C)
    found: np.ndarray = features.astype(np.float64) / 2 @ cosines * (2 / bands)
    return found


def distortion(one: np.ndarray, other: np.ndarray) -> float:
    """Return the mel-cepstral distortion in dB of two sounds, (S, F) and (T, F).

    The mean over the best alignment of 10 / ln 10 * sqrt(2 sum_d (c_d - c'_d)^2) (Kubichek 1993),
    which is the root mean square of the difference in dB of two smooth spectra of equal loudness.
    """
    left, right = cepstrum(one), cepstrum(other)
    squares = (left**2).sum(1)[:, None] + (right**2).sum(1) - 2 * left @ right.T
    return warped_mean(DECIBELS * np.sqrt(2 * np.maximum(squares, 0.0)))


def warped_mean(costs: np.ndarray) -> float:
    """Return the mean cost along the path through costs (S, T) with the smallest sum.

    The path leads from the first pair of windows to the last one, by steps of one window in either
    sound or in both (Sakoe and Chiba 1978). It is computed diagonal by diagonal.
    """
    S, T = costs.shape
    total = np.full((S + 1, T + 1), np.inf)
    steps = np.zeros((S + 1, T + 1))
    total[0, 0] = 0.0
    for diagonal in range(S + T - 1):
        i = np.arange(max(0, diagonal - T + 1), min(S, diagonal + 1)) + 1
        j = diagonal + 2 - i
        before = np.stack([total[i - 1, j - 1], total[i - 1, j], total[i, j - 1]])
        counts = np.stack([steps[i - 1, j - 1], steps[i - 1, j], steps[i, j - 1]])
        best, at = before.argmin(0), np.arange(len(i))
        total[i, j] = before[best, at] + costs[i - 1, j - 1]
        steps[i, j] = counts[best, at] + 1
    return float(total[S, T] / steps[S, T])
