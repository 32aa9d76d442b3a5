"""The interface of baselines: trivial models that give the scores of a trained model a meaning.

A baseline is fitted on sources and targets of the training set. It predicts from sources alone.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from regard.core.options import Options


class Baseline:
    """Base class of baselines. name: as printed. stored: whether the run folder keeps it."""

    name: ClassVar[str]
    stored: ClassVar[bool] = False

    def predict(self, sources: Sequence[Any]) -> list[Any]:
        """Return one predicted value per source: a text, or a tuple of labels, tags or numbers.

        Not supported if the baseline is only scored by probabilities, as a language model is.
        """
        raise NotImplementedError


class StoredBaseline(Options, Baseline):
    """Base class of baselines that are small enough for `baselines.json` in the run folder.

    The fields are what was learned, so reading the file validates it.
    """

    stored: ClassVar[bool] = True
    kind: str


class BaselineFit(NamedTuple):
    """How a task fits one of its baselines.

    fit: takes sources and targets; returns None if the baseline does not apply to them.
    stored: whether the baseline is stored. Otherwise it must be fitted on the training set again.
    """

    name: str
    fit: Callable[[Sequence[Any], Sequence[Any]], Baseline | None]
    stored: bool = True
