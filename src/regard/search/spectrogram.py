"""The result of a search that writes frames. T frames, F numbers per frame."""

from typing import NamedTuple

import numpy as np


class Spectrogram(NamedTuple):
    """The frames (T, F) of a sound. truncated: whether they reached their maximum number."""

    frames: np.ndarray
    truncated: bool = False
