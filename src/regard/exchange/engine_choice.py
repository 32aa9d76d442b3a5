"""Loading a model with a chosen engine."""

from pathlib import Path

from regard.core.errors import UserError, info
from regard.exchange.auto_engine import MIN_SOURCES, AutoEngine
from regard.exchange.dev_metric import DevMetric
from regard.exchange.engine_records import EngineChoice
from regard.exchange.export import cached_export
from regard.inference.engine import Engine
from regard.inference.open_engine import open_engine
from regard.inference.predictor import Predictor
from regard.inference.shortlisted import with_shortlist
from regard.storage.export_folder import read_export


def load_predictor(
    folder: str | Path,
    engine: str | None = None,
    quantize: str | None = None,
    shortlist: bool | str | Path = False,
) -> Predictor:
    """Return the predictor of a run folder or an exported folder.

    engine: torch (default), ctranslate2, onnx, or auto (the fastest). An exported folder has its
    own engine. quantize: the type of quantized weights, such as int8.
    shortlist: restricts the output layer to a shortlist of tokens. True: use the shortlist in the
    folder (made by `regard shortlist`). A path: use this file.
    """
    predictor = Predictor.load(Path(folder), engine, quantize)
    if engine not in (None, "torch") and read_export(predictor.folder) is None:
        _run_by(predictor, engine, quantize)
    return with_shortlist(predictor, shortlist) if shortlist else predictor


def select_engine(predictor: Predictor) -> None:
    """Let engine auto select an engine now, on the dev set, instead of on the texts to come."""
    engine = predictor.engine
    if engine.save_choice() is not None or not predictor.task.exportable:
        return
    sources = [example.source for example in DevMetric(predictor).examples]
    if len(sources) >= MIN_SOURCES:
        predictor.predict(sources)
    else:
        info(
            f"engine auto: using torch: the dev set of {predictor.folder} is not available, or has "
            f"fewer than {MIN_SOURCES} examples"
        )


def _run_by(predictor: Predictor, engine: str, quantize: str | None) -> None:
    """Replace the engine of a predictor. Export the model for the engine if needed."""
    task, folder = predictor.task.kind, predictor.folder
    if not predictor.task.exportable:
        if engine == "auto":
            info(f"engine auto: using torch, the only engine for {task} models")
            return
        raise UserError(f"engine {engine}: {task} models need engine torch")
    if engine != "auto":
        predictor.engine = open_engine(cached_export(predictor, engine, quantize))
        return
    if quantize is not None:
        raise UserError(f"quantize {quantize}: engine auto tries int8 by itself; omit it")

    def load(choice: EngineChoice) -> Engine:
        return load_predictor(folder, *choice).engine

    predictor.engine = AutoEngine(predictor.engine, load, folder, DevMetric(predictor))
