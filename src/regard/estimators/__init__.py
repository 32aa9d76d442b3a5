"""Estimators in the manner of scikit-learn: fit, predict, evaluate, save, load."""

from pathlib import Path

from regard import parallel
from regard.config import flatten
from regard.errors import UserError
from regard.estimators.base import Estimator
from regard.estimators.labels import Classifier, Regressor, Tagger
from regard.estimators.language import LanguageModel
from regard.estimators.transducer import Transducer
from regard.training.memory import keep_freed_memory
from regard.training.run import check_version, read_config
from regard.training.weights import load_weights

__all__ = [
    "Classifier",
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


def load(folder: str | Path) -> Estimator:
    """The fitted estimator of a run folder."""
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such model folder")
    check_version(folder)
    config = read_config(folder)
    if unset := [
        key for key, v in flatten(config.model.model_dump()).items() if v in (None, "auto")
    ]:
        raise UserError(f"{folder}/config.yaml: damaged or cut short: model.{unset[0]} is not set")
    keep_freed_memory()
    task = config.task.load(folder)
    model = task.build(config.model).to(parallel.device())
    load_weights(model, folder / "model.safetensors")
    return KINDS[config.task.kind]()._take(folder, config, task, model)
