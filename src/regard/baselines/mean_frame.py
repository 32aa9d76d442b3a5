"""A baseline of synthesis: the same frame for the mean duration."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from typing_extensions import Self

from regard.baselines.baseline import StoredBaseline
from regard.baselines.constant import Finite


class MeanFrame(StoredBaseline):
    """Predict the mean frame of the training set, as often as a sound has frames on average."""

    name: ClassVar[str] = "mean frame"
    kind: Literal["mean_frame"] = "mean_frame"
    frame: tuple[Finite, ...] = Field(min_length=1)
    length: int = Field(gt=0)

    @classmethod
    def fit(cls, sources: Sequence[Any], targets: Sequence[np.ndarray]) -> Self | None:
        """Return the baseline for targets (S, F)."""
        if not len(targets):
            return None
        mean = np.concatenate(list(targets)).mean(0, dtype=np.float64)
        length = round(sum(map(len, targets)) / len(targets))
        return cls(frame=tuple(mean.tolist()), length=max(1, length))

    def predict(self, sources: Sequence[Any]) -> list[np.ndarray]:
        """Return the same features (S, F) for each source."""
        return [np.tile(np.array(self.frame), (self.length, 1))] * len(sources)
