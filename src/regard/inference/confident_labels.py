"""Pseudo-labels: sources with the predictions that a model is confident of (Lee 2013)."""

from collections.abc import Sequence
from typing import Any

from regard.data.reading.read import Pair
from regard.inference.predictor import Predictor


def label(predictor: Predictor, sources: Sequence[Any], least: float) -> list[tuple[Pair, float]]:
    """Return the sources with the predictions whose confidence is at least so much, and that."""
    sources = [source for source in sources if source]
    return [
        (Pair(source, found.value, 0), float(found.confidence))
        for source, found in zip(sources, predictor.predict(sources), strict=True)
        if found.confidence is not None and found.confidence >= least
    ]
