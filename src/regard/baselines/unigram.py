"""The unigram model: the frequency of each token, whatever comes before it."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field
from typing_extensions import Self

from regard.baselines.baseline import StoredBaseline

Count = Annotated[int, Field(ge=0, le=10**15)]


class Unigram(StoredBaseline):
    """Token frequencies with add-one smoothing. counts: of each token id, in the training set.

    It has no predictions: a language model is scored by the probability of given texts.
    """

    name: ClassVar[str] = "unigram"
    kind: Literal["unigram"] = "unigram"
    counts: tuple[Count, ...] = Field(min_length=1)

    @classmethod
    def of(cls, tokens: np.ndarray, size: int) -> Self | None:
        """Return the model of token ids (N,). size: number of ids in the vocabulary."""
        if not len(tokens):
            return None
        return cls(counts=tuple(np.bincount(tokens, minlength=size).tolist()))

    def log_probabilities(self) -> np.ndarray:
        """Return log p (V,) of each token id."""
        counts = np.array(self.counts, np.float64) + 1
        return np.log(counts / counts.sum())
