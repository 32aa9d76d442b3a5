"""Predictors whose output layer is restricted to the target tokens of a shortlist."""

from pathlib import Path
from typing import Any

from regard.core.errors import UserError
from regard.inference.predictor import Predictor
from regard.inference.torch_engine import TorchEngine
from regard.search.shortlist import FILE, Shortlist


def shortlist_path(folder: Path, shortlist: bool | str | Path) -> Path:
    """Return the path of the shortlist file; True means the file in the model folder."""
    return folder / FILE if isinstance(shortlist, bool) else Path(shortlist)


def with_shortlist(predictor: Predictor, file: bool | str | Path) -> Predictor:
    """Restrict the output layer of a predictor to a shortlist; return the same predictor."""
    task: Any = predictor.task
    if not task.exportable:
        raise UserError(f"shortlist: only supported for task transduce, found {task.kind}")
    if (gives := predictor.config.model.gives) != "steps":
        raise UserError(
            f"shortlist: expected a model that decodes token by token, this one outputs {gives}"
        )
    if predictor.module is None:
        name = predictor.engine.name
        raise UserError(f"shortlist: not supported by engine {name}", help="use --engine torch")
    path = shortlist_path(predictor.folder, file)
    shortlist = Shortlist.load(path, task.source_tokenizer(), task.target)
    predictor.engine = TorchEngine(predictor.module, task.uses_threads, shortlist)
    return predictor
