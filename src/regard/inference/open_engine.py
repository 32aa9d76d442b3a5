"""The engine of an exported folder."""

import importlib
from pathlib import Path

from regard.core.errors import UserError
from regard.core.files import read_facts
from regard.inference.engine import Engine

# Module and class of each; made from the folder of the engine's own files.
ENGINES = {
    "ctranslate2": ("regard.inference.ctranslate2_engine", "CTranslate2Engine"),
    "onnx": ("regard.inference.onnx_engine", "OnnxEngine"),
}


def open_engine(folder: Path) -> Engine:
    """The engine that an exported folder holds."""
    (name,) = read_facts(folder / "export.json", "engine")
    if name not in ENGINES:
        raise UserError(f"{folder}: holds the engine {name!r}, which this regard does not know")
    module, kind = ENGINES[name]
    engine: Engine = getattr(importlib.import_module(module), kind)(folder / name)
    return engine
