"""The engine of an exported folder."""

import importlib
from pathlib import Path

from regard.core.errors import UserError
from regard.core.files import read_fields
from regard.inference.engine import Engine
from regard.storage.export_folder import read_export

# Module and class of each; made from the folder of the engine's own files.
ENGINES = {
    "ctranslate2": ("regard.exchange.ctranslate2_engine", "CTranslate2Engine"),
    "onnx": ("regard.inference.onnx_engine", "OnnxEngine"),
}
NAMES = ("torch", *ENGINES, "auto")


def open_engine(folder: Path) -> Engine:
    """The engine that an exported folder holds."""
    (name,) = read_fields(folder / "export.json", "engine")
    if name not in ENGINES:
        raise UserError(f"{folder}: holds the engine {name!r}, which this regard does not know")
    module, kind = ENGINES[name]
    engine: Engine = getattr(importlib.import_module(module), kind)(folder / name)
    return engine


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
