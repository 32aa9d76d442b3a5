"""Estimators in the manner of scikit-learn: fit, predict, evaluate, save, load."""

from pathlib import Path

from regard.estimators.estimator import Estimator
from regard.estimators.label_estimators import Classifier, Regressor, Tagger
from regard.estimators.language_estimator import LanguageModel
from regard.estimators.transducer import Transducer
from regard.exchange.engine_choice import load_predictor
from regard.inference.predictor import Predictor
from regard.tasks.values import Request

__all__ = [
    "Classifier",
    "Estimator",
    "LanguageModel",
    "Regressor",
    "Request",
    "Tagger",
    "Transducer",
    "load",
]
KINDS: dict[str, type[Estimator]] = {
    kind.task: kind for kind in (Transducer, Tagger, Classifier, Regressor, LanguageModel)
}


def load(
    folder: str | Path,
    engine: str | None = None,
    quantize: str | None = None,
    shortlist: bool | str | Path = False,
) -> Estimator:
    """Return the fitted estimator of a run folder, or of an exported one.

    engine: what runs a transducer: torch (as it was trained), ctranslate2, onnx, or auto, the
    fastest of them; an exported folder has its own. quantize: how its weights are rounded.
    shortlist: only target tokens that are likely for a source are considered; True: those of the
    folder's shortlist, which `regard shortlist` made, or else the file of one.
    """
    return fitted(load_predictor(folder, engine, quantize, shortlist))


def fitted(predictor: Predictor) -> Estimator:
    """Return the estimator of a trained model."""
    return KINDS[predictor.task.kind]()._take(predictor)
