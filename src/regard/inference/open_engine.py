"""The engines of exported model folders."""

import importlib
from pathlib import Path

from regard.core.errors import UserError
from regard.core.files import read_fields
from regard.inference.engine import Engine
from regard.storage.export_folder import read_export

# Module and class of each engine. The constructor takes the subfolder of the export.
ENGINES = {
    "ctranslate2": ("regard.exchange.ctranslate2_engine", "CTranslate2Engine"),
    "onnx": ("regard.inference.onnx_engine", "OnnxEngine"),
}
NAMES = ("torch", *ENGINES, "auto")


def open_engine(folder: Path) -> Engine:
    """Return the engine that an exported folder was made for."""
    (name,) = read_fields(folder / "export.json", engine=str)
    if name not in ENGINES:
        raise UserError(f"{folder}: unknown engine {name!r}")
    module, kind = ENGINES[name]
    engine: Engine = getattr(importlib.import_module(module), kind)(folder / name)
    return engine


def is_exported(folder: Path, engine: str | None, quantize: str | None) -> bool:
    """Return whether a folder was exported for an engine other than torch.

    Raise UserError if the export does not match `engine` or `quantize`.
    """
    if engine not in (None, *NAMES):
        raise UserError(f"engine: expected one of {', '.join(NAMES)}, found {engine!r}")
    facts = read_export(folder)
    if facts is None:
        return False
    own = facts["engine"] if facts["engine"] in ENGINES else "torch"
    if engine not in (None, "auto", own):
        raise UserError(
            f"{folder}: exported for engine {own}; {engine} cannot run it",
            help="use the run folder that it was exported from",
        )
    if quantize not in (None, facts.get("quantize")):
        raise UserError(
            f"{folder}: exported with quantize={facts.get('quantize')}",
            help=f"export again for {quantize}",
        )
    return own != "torch"
