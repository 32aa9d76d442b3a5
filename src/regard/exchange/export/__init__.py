"""Export of a trained model for another engine, to a folder that `regard.load` reads."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from regard.core.cache import cached
from regard.core.errors import UserError, info
from regard.exchange.export.parity import check_parity
from regard.exchange.export_cache import KIND, export_key
from regard.inference.predictor import Predictor
from regard.storage.export_folder import atomic_folder, write_export

__all__ = ["EXPORTERS", "cached_export", "export_model"]

# The modules with a function `export(predictor, folder, **options)`, which writes the files of the
# engine into the folder and returns metadata.
EXPORTERS = {
    "ctranslate2": "regard.exchange.export.ctranslate2",
    "onnx": "regard.exchange.export.onnx",
    "regard": "regard.exchange.export.int8_folder",  # for the engine torch, with int8 weights
}


def export_model(
    predictor: Predictor, to: str, out: Path, force: bool = False, **options: Any
) -> dict[str, Any]:
    """Export a model to the folder `out`, verify the predictions, and return the metadata.

    The folder is written under a temporary name, and renamed when it is complete and verified.
    to: the engine.
    """
    with atomic_folder(out, force) as folder:
        return write_exported(predictor, to, folder, **options)


def write_exported(predictor: Predictor, to: str, folder: Path, **options: Any) -> dict[str, Any]:
    """Write and verify an exported folder; return its metadata."""
    facts = {"engine": to, **_exporter(to)(predictor, folder / to, **options)}
    write_export(predictor.folder, folder, facts)
    facts["parity"] = check_parity(predictor, folder, facts.get("quantize"))
    return write_export(predictor.folder, folder, facts)


def cached_export(predictor: Predictor, to: str, quantize: str | None) -> Path:
    """Return the cached export of a model; create it if needed."""
    key = export_key(predictor.folder, to, quantize)

    def make(new: Path) -> dict[str, Any]:
        info(f"{to}{f' {quantize}' if quantize else ''}: exporting the model to the cache (once)")
        return write_exported(predictor, to, new, quantize=quantize)

    return cached(KIND, key, make)[0]


def _exporter(to: str) -> Callable[..., dict[str, Any]]:
    if to not in EXPORTERS:
        raise UserError(f"--to {to}: expected one of {', '.join(EXPORTERS)}")
    exporter: Callable[..., dict[str, Any]] = importlib.import_module(EXPORTERS[to]).export
    return exporter
