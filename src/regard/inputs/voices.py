"""The means of voices, which are subtracted from log-mel features.

S windows, F bands, N recordings.
"""

from typing import NamedTuple

import numpy as np


def voice_mean(rows: np.ndarray) -> np.ndarray:
    """Return the mean (F,) of log-mel windows (S, F), weighted by the square root of their power.

    Pauses hardly count, whose length and noise differ between recordings of the same word.
    """
    wide = rows.astype(np.float64)
    weights = np.sqrt(np.exp(wide - wide.max()).sum(1))
    found: np.ndarray = weights @ wide / weights.sum()
    return found.astype(np.float32)


class UnknownVoice(NamedTuple):
    """An estimate of the mean of a speaker from one recording: bias + slope * its `voice_mean`.

    A recording has a mean of its own, which depends on its words, so the slope is below one.
    bias, slope: (F,).
    """

    bias: np.ndarray
    slope: np.ndarray

    @classmethod
    def fit(cls, recordings: np.ndarray, speakers: np.ndarray) -> "UnknownVoice":
        """Return the least squares estimate per band.

        recordings: the `voice_mean` of each recording (N, F). speakers: the means of their
        speakers (N, F).
        """
        own, goal = recordings.mean(0), speakers.mean(0)
        product = ((recordings - own) * (speakers - goal)).sum(0)
        square = np.square(recordings - own).sum(0)
        slope = np.clip(product / np.where(square > 0, square, 1.0), 0.0, 1.0)
        return cls((goal - slope * own).astype(np.float32), slope.astype(np.float32))

    def estimate(self, rows: np.ndarray) -> np.ndarray:
        """Return the estimated mean (F,) of the speaker of log-mel windows (S, F)."""
        return self.bias + self.slope * voice_mean(rows)
