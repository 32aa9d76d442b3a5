"""Alignments of predictions: their attention to the source tokens."""

from dataclasses import replace

from regard.inference.engine import Engine
from regard.search.forced_decoding import cross_attention
from regard.search.search import SearchRequest, SearchResult
from regard.tasks.values import Prediction


def with_alignment(
    engine: Engine, request: SearchRequest, found: list[SearchResult], predictions: list[Prediction]
) -> list[Prediction]:
    """Return the predictions with alignments: their attention to the source tokens."""
    request = request.to(engine.device)
    targets = [list(hypotheses[0].tokens) for hypotheses in found]
    weights = cross_attention(engine.for_alignment(request), request.sequences()[0], targets)
    return [
        replace(prediction, alignment=tuple(tuple(row) for row in one.tolist()))
        for prediction, one in zip(predictions, weights, strict=True)
    ]
