"""Estimators in the manner of scikit-learn: fit, predict, evaluate, save, load."""

from collections.abc import Callable
from pathlib import Path

from torch import nn

from regard.config.load import flatten
from regard.core import parallel
from regard.core.errors import UserError
from regard.core.memory import keep_freed_memory
from regard.estimators.estimator import Estimator
from regard.estimators.label_estimators import Classifier, Regressor, Tagger
from regard.estimators.language_estimator import LanguageModel
from regard.estimators.shortlisting import with_shortlist
from regard.estimators.transducer import Transducer
from regard.exchange.engine_choice import exported, run_by
from regard.inference.open_engine import open_engine
from regard.storage.int8_weights import load_int8, weights_file
from regard.storage.model_folder import not_a_model
from regard.storage.run_files import read_config
from regard.storage.weights import load_weights
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
    """The fitted estimator of a run folder, or of an exported one.

    engine: what runs a transducer: torch (as it was trained), ctranslate2, onnx, or auto, the
    fastest of them; an exported folder has its own. quantize: how its weights are rounded.
    shortlist: only target symbols that are likely for a source are looked at; True: those of
    the folder's shortlist, which `regard shortlist` made, or else the file of one.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(not_a_model(folder))
    config = read_config(folder)
    if unset := [
        key for key, v in flatten(config.model.model_dump()).items() if v in (None, "auto")
    ]:
        raise UserError(f"{folder}/config.yaml: damaged or cut short: model.{unset[0]} is not set")
    keep_freed_memory()
    task = config.task.load(folder)
    estimator = KINDS[config.task.kind]()
    if exported(folder, engine, quantize):
        estimator._take(folder, config, task, open_engine(folder))
        return with_shortlist(estimator, shortlist) if shortlist else estimator
    rounded = quantize if engine in (None, "torch") else None
    model = _model(folder, lambda: task.build(config.model), rounded)
    estimator = run_by(estimator._take(folder, config, task, model), engine, quantize)
    return with_shortlist(estimator, shortlist) if shortlist else estimator


def _model(folder: Path, build: Callable[[], nn.Module], quantize: str | None) -> nn.Module:
    """The model with the weights of a run folder, or of an export in int8."""
    if quantize not in (None, "int8"):
        raise UserError(f"quantize: int8 expected, or nothing; {quantize!r} found")
    path = weights_file(folder)
    if quantize or path.parent != folder:
        return load_int8(build, path)
    model = build().to(parallel.device())
    load_weights(model, path)
    return model
