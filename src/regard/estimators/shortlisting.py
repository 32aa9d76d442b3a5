"""A trained model that looks only at the target symbols of a shortlist."""

from pathlib import Path

from regard.core.errors import UserError
from regard.estimators.estimator import Estimator
from regard.inference.engine import Engine
from regard.inference.torch_engine import TorchEngine
from regard.search.shortlist import FILE, Shortlist
from regard.tasks.transduce import Transduce


def shortlist_path(folder: Path, given: bool | str | Path) -> Path:
    """The file that is meant: of the model folder, unless another one is given."""
    return folder / FILE if isinstance(given, bool) else Path(given)


def with_shortlist(estimator: Estimator, given: bool | str | Path) -> Estimator:
    """The estimator, run by torch with a shortlist."""
    task, model = estimator.task_, estimator.model_
    if not isinstance(task, Transduce):
        raise UserError(f"shortlist: only for transducers; this is a {estimator.task} model")
    if isinstance(model, Engine):
        raise UserError(f"shortlist: the engine {model.name} has none; choose engine torch")
    path = shortlist_path(estimator.folder_, given)
    shortlist = Shortlist.load(path, task.source_vocabulary(), task.target)
    estimator.model_ = TorchEngine(model, shortlist)
    return estimator
