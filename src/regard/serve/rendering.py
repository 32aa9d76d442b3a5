"""Answers as JSON shows them."""

from collections.abc import Sequence
from typing import Any

from regard.tasks.task import Prediction


def rendered(found: Prediction, nbest: int = 1) -> dict[str, Any]:
    """An answer; what does not apply is absent."""
    answer: dict[str, Any] = {"text": found.text, "value": found.shown()}
    answer |= _score(found)
    if found.symbols or found.symbol_scores:
        answer["symbols"] = found.symbols
    if found.symbol_scores:
        answer["symbol_scores"] = _rounded(found.symbol_scores)
    if nbest > 1 and found.alternatives:
        answer["alternatives"] = [{"text": o.text, **_score(o)} for o in found.alternatives]
    if found.unknown:
        answer["unknown"] = found.unknown
    if found.cut:
        answer["cut"] = True
    if found.confidence is not None:
        answer["confidence"] = round(found.confidence, 6)
    if found.probabilities is not None:
        answer["probabilities"] = {k: round(p, 6) for k, p in found.probabilities.items()}
    if found.alignment:
        answer["alignment"] = [_rounded(row) for row in found.alignment]
    return answer


def rendered_growth(found: Prediction) -> dict[str, Any]:
    """An answer that is not whole yet."""
    scores = {"symbol_scores": _rounded(found.symbol_scores)} if found.symbol_scores else {}
    return {"text": found.text, "symbols": found.symbols, **scores}


def _score(found: Prediction) -> dict[str, float]:
    """Rounded: the digits behind depend on what a text is answered together with."""
    return {} if found.score is None else {"score": round(found.score, 6)}


def _rounded(numbers: Sequence[float]) -> list[float]:
    return [round(number, 6) for number in numbers]
