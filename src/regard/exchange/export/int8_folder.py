"""Export for regard itself, with int8 weights: a quarter of the disk space and memory."""

from pathlib import Path
from typing import Any

from regard.core.errors import UserError
from regard.inference.predictor import Predictor
from regard.storage.int8_weights import FILE, save_int8, weights_file


def export(predictor: Predictor, folder: Path, quantize: str | None = None) -> dict[str, Any]:
    """Write int8 weights into the folder; return their type and the file sizes."""
    if quantize != "int8":
        raise UserError("--to regard: requires --quantize int8; fp32 is the run folder itself")
    source = weights_file(predictor.folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_int8(lambda: predictor.task.build(predictor.config.model), source, folder / FILE)
    sizes = [path.stat().st_size for path in (source, folder / FILE)]
    return {"quantize": "int8", "bytes_before": sizes[0], "bytes": sizes[1]}
