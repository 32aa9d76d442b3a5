"""Estimators with the scikit-learn interface: fit, predict, evaluate, save, load."""

from pathlib import Path
from typing import TypeVar, overload

from regard.core.argument_names import names_arguments
from regard.core.errors import UserError
from regard.estimators.estimator import Estimator
from regard.estimators.label_estimators import Classifier, Regressor
from regard.estimators.language_estimator import LanguageModel
from regard.estimators.synthesizer import Synthesizer
from regard.estimators.tagger import Tagger
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
    "Synthesizer",
    "Tagger",
    "Transducer",
    "load",
]
Kind = TypeVar("Kind", bound=Estimator)
KINDS: dict[str, type[Estimator]] = {
    kind.task: kind
    for kind in (Transducer, Tagger, Classifier, Regressor, LanguageModel, Synthesizer)
}


@overload
def load(
    folder: str | Path,
    engine: str | None = None,
    quantize: str | None = None,
    shortlist: bool | str | Path = False,
) -> Estimator: ...


@overload
def load(
    folder: str | Path,
    engine: str | None = None,
    quantize: str | None = None,
    shortlist: bool | str | Path = False,
    *,
    kind: type[Kind],
) -> Kind: ...


@names_arguments
def load(
    folder: str | Path,
    engine: str | None = None,
    quantize: str | None = None,
    shortlist: bool | str | Path = False,
    *,
    kind: type[Estimator] = Estimator,
) -> Estimator:
    """Return the fitted estimator of a run folder or an exported model.

    folder: the run folder, or the folder of an exported model.
    engine: torch (default), ctranslate2, onnx, or auto, which benchmarks all engines and selects
    the fastest. An exported model has a fixed engine. quantize: "int8" for int8 weights.
    shortlist: restrict the output layer to likely target tokens. True uses the shortlist in the
    folder (see `regard shortlist`); a path uses that shortlist file.
    kind: the expected class, such as `regard.Classifier`. A type checker then knows the class of
    the result. Raise UserError if the model is of another class.
    """
    predictor = load_predictor(folder, engine, quantize, shortlist)
    found = KINDS[predictor.task.kind]
    if not issubclass(found, kind):
        raise UserError(
            f"{folder}: expected a {kind.__name__}, found a {found.__name__}",
            help=f"use kind=regard.{found.__name__}",
        )
    return fitted(predictor)


def fitted(predictor: Predictor) -> Estimator:
    """Return the fitted estimator of a predictor, of the class for its task."""
    return KINDS[predictor.task.kind]()._set_predictor(predictor)
