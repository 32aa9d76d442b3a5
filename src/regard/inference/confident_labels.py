"""Pseudo-labels: confident predictions of a model, used as training targets (Lee 2013)."""

from collections.abc import Sequence
from typing import Any

from regard.data.reading.read import Pair
from regard.inference.predictor import Predictor


def pseudo_label(
    predictor: Predictor, sources: Sequence[Any], threshold: float
) -> list[tuple[Pair, float]]:
    """Return (pair, confidence) for each source predicted with confidence >= threshold.

    The target of the pair is the prediction.
    """
    sources = [source for source in sources if source]
    return [
        (Pair(source, found.value, 0), float(found.confidence))
        for source, found in zip(sources, predictor.predict(sources), strict=True)
        if found.confidence is not None and found.confidence >= threshold
    ]
