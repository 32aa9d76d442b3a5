"""Export: a trained model for another engine, in a folder of its own that `regard.load` takes."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import UserError
from regard.export.folder import fresh, read_export, write_export
from regard.export.parity import check_parity

if TYPE_CHECKING:
    from regard.estimators import Estimator

__all__ = ["EXPORTERS", "export_model", "read_export"]

# Each has `export(estimator, folder, **options)`, which writes the engine's own files into the
# folder and gives facts about them.
EXPORTERS = {"ctranslate2": "regard.export.ctranslate2", "onnx": "regard.export.onnx"}


def export_model(
    estimator: "Estimator", to: str, out: Path, force: bool = False, **options: Any
) -> dict[str, Any]:
    """Writes an exported folder that was found to answer as the model does; its facts.

    The folder is made under another name and takes its own when it is whole and was checked.
    """
    exporter = _exporter(to)
    with fresh(out, force) as folder:
        facts = exporter(estimator, folder / to, **options)
        write_export(estimator, folder, {"engine": to, **facts})
        facts["parity"] = check_parity(estimator, folder, facts.get("quantize"))
        return write_export(estimator, folder, {"engine": to, **facts})


def _exporter(to: str) -> Callable[..., dict[str, Any]]:
    if to not in EXPORTERS:
        raise UserError(f"--to: {', '.join(EXPORTERS)} expected, {to!r} found")
    exporter: Callable[..., dict[str, Any]] = importlib.import_module(EXPORTERS[to]).export
    return exporter
