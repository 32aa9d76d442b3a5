"""A trained model that considers only the target tokens of a shortlist."""

from pathlib import Path
from typing import Any

from regard.core.errors import UserError
from regard.inference.predictor import Predictor
from regard.inference.torch_engine import TorchEngine
from regard.search.shortlist import FILE, Shortlist


def shortlist_path(folder: Path, given: bool | str | Path) -> Path:
    """The file that is meant: of the model folder, unless another one is given."""
    return folder / FILE if isinstance(given, bool) else Path(given)


def with_shortlist(predictor: Predictor, given: bool | str | Path) -> Predictor:
    """Give the predictor a shortlist."""
    task: Any = predictor.task
    if not task.exportable:
        raise UserError(f"shortlist: only for transducers; this is a {task.kind} model")
    if predictor.module is None:
        name = predictor.engine.name
        raise UserError(f"shortlist: the engine {name} has none; choose engine torch")
    path = shortlist_path(predictor.folder, given)
    shortlist = Shortlist.load(path, task.source_tokenizer(), task.target)
    predictor.engine = TorchEngine(predictor.module, task.spreads, shortlist)
    return predictor
