"""Export: a trained model for another engine, in a folder of its own that `regard.load` takes."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from regard.core.cache import cached, make_key
from regard.core.errors import UserError, info
from regard.exchange.export.parity import check_parity
from regard.inference.predictor import Predictor
from regard.storage.export_folder import FORMAT, fresh, write_export
from regard.storage.fingerprint import model_digest

__all__ = ["EXPORTERS", "cached_export", "export_model"]

# Each has `export(predictor, folder, **options)`, which writes the engine's own files into the
# folder and gives facts about them.
EXPORTERS = {
    "ctranslate2": "regard.exchange.export.ctranslate2",
    "onnx": "regard.exchange.export.onnx",
    "regard": "regard.exchange.export.int8_folder",  # for torch, with weights in int8
}


def export_model(
    predictor: Predictor, to: str, out: Path, force: bool = False, **options: Any
) -> dict[str, Any]:
    """Writes an exported folder that was found to answer as the model does; its facts.

    The folder is made under another name and takes its own when it is whole and was checked.
    """
    with fresh(out, force) as folder:
        return write_exported(predictor, to, folder, **options)


def write_exported(predictor: Predictor, to: str, folder: Path, **options: Any) -> dict[str, Any]:
    """Writes all that an exported folder has and checks it; its facts."""
    facts = {"engine": to, **_exporter(to)(predictor, folder / to, **options)}
    write_export(predictor.folder, folder, facts)
    facts["parity"] = check_parity(predictor, folder, facts.get("quantize"))
    return write_export(predictor.folder, folder, facts)


def cached_export(predictor: Predictor, to: str, quantize: str | None) -> Path:
    """The exported folder of a model in the cache; made where it is not there."""
    key = make_key(to, quantize, FORMAT, model_digest(predictor.folder))

    def make(new: Path) -> dict[str, Any]:
        info(f"{to}{f' {quantize}' if quantize else ''}: the model is exported to the cache, once")
        return write_exported(predictor, to, new, quantize=quantize)

    return cached("exports", key, make)[0]


def _exporter(to: str) -> Callable[..., dict[str, Any]]:
    if to not in EXPORTERS:
        raise UserError(f"--to: {', '.join(EXPORTERS)} expected, {to!r} found")
    exporter: Callable[..., dict[str, Any]] = importlib.import_module(EXPORTERS[to]).export
    return exporter
