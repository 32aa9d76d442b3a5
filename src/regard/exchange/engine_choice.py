"""Which engine runs a model."""

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from regard.core.errors import UserError
from regard.exchange.auto_engine import AutoEngine
from regard.inference.open_engine import ENGINES, open_engine
from regard.inference.torch_engine import TorchEngine
from regard.storage.export_folder import read_export

if TYPE_CHECKING:
    from regard.estimators import Estimator

Kind = TypeVar("Kind", bound="Estimator")
NAMES = ("torch", *ENGINES, "auto")


def exported(folder: Path, engine: str | None, quantize: str | None) -> bool:
    """Whether a folder was exported for an engine of its own; refuses to run it by another."""
    if engine not in (None, *NAMES):
        raise UserError(f"engine: {', '.join(NAMES)} expected, {engine!r} found")
    facts = read_export(folder)
    if facts is None:
        return False
    own = facts["engine"] if facts["engine"] in ENGINES else "torch"
    if engine not in (None, "auto", own):
        raise UserError(
            f"{folder}: exported for the engine {own}, so {engine} cannot run it; give the folder "
            "of the run that it was made from"
        )
    if quantize not in (None, facts.get("quantize")):
        raise UserError(
            f"{folder}: exported with weights in {facts.get('quantize')}; export it anew for "
            f"{quantize}"
        )
    return own != "torch"


def run_by(estimator: Kind, engine: str | None, quantize: str | None) -> Kind:
    """The estimator of a run folder with the engine that is to run it, exported where needed."""
    if engine in (None, "torch") or read_export(estimator.folder_) is not None:
        return estimator
    if estimator.task != "transduce":
        raise UserError(f"engine {engine}: a {estimator.task} model is run by torch only")
    if engine == "auto":
        if quantize is not None:
            raise UserError(f"quantize {quantize}: engine auto tries it by itself; leave it out")
        estimator.model_ = AutoEngine(estimator.folder_, TorchEngine(estimator.model_))
        return estimator
    from regard.exchange.export import cached_export

    assert engine is not None
    estimator.model_ = open_engine(cached_export(estimator, engine, quantize))
    return estimator
