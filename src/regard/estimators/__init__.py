"""Estimators with the scikit-learn interface: fit, predict, evaluate, save, load."""

from pathlib import Path

from regard.estimators.estimator import Estimator
from regard.estimators.label_estimators import Classifier, Regressor, Tagger
from regard.estimators.language_estimator import LanguageModel
from regard.estimators.transducer import Transducer
from regard.exchange.engine_choice import load_predictor
from regard.inference.predictor import Predictor
from regard.tasks.values import Constraints

__all__ = [
    "Classifier",
    "Constraints",
    "Estimator",
    "LanguageModel",
    "Regressor",
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
    """Return the fitted estimator of a run folder or an exported model.

    engine: torch (default), ctranslate2, onnx, or auto, which benchmarks all engines and selects
    the fastest. An exported model has a fixed engine. quantize: "int8" for int8 weights.
    shortlist: restrict the output layer to likely target tokens. True uses the shortlist in the
    folder (see `regard shortlist`); a path uses that shortlist file.
    """
    return fitted(load_predictor(folder, engine, quantize, shortlist))


def fitted(predictor: Predictor) -> Estimator:
    """Return the fitted estimator of a predictor, of the class for its task."""
    return KINDS[predictor.task.kind]()._set_predictor(predictor)
