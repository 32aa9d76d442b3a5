"""A checkpoint folder of transformers: settings and tensors. No pickle is ever loaded."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.core.errors import UserError
from regard.storage.weights import read_tensors

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.bin")
Metadata = dict[str, Any]


@dataclass(frozen=True)
class Checkpoint:
    """The settings in a checkpoint folder. generation: in older folders, the same as config."""

    folder: Path
    config: Metadata
    generation: Metadata
    tokenizer: Metadata

    def path(self, name: str) -> Path:
        """Return the path of a file. Raise UserError if it is missing."""
        path = self.folder / name
        if not path.is_file():
            raise UserError(f"{path}: no such file; copy the complete checkpoint folder")
        return path


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read the settings of a checkpoint folder."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; expected a checkpoint folder of transformers")
    path = folder / "config.json"
    if not path.is_file():
        raise UserError(f"{folder}: not a checkpoint of transformers (no config.json in it)")
    config = read_object(path)
    return Checkpoint(
        folder,
        config,
        read_object(folder / "generation_config.json") or config,
        read_object(folder / "tokenizer_config.json"),
    )


def read_object(path: Path) -> Metadata:
    """Read a JSON object. Return an empty one if there is no such file."""
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text("utf-8"))
    except (ValueError, OSError) as error:
        raise UserError(f"{path}: not valid JSON ({error}); copy the file again") from error
    if not isinstance(content, dict):
        raise UserError(f"{path}: expected an object, found {str(content)[:40]!r}")
    return content


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read the tensors of a checkpoint, from one or several safetensors files."""
    if (folder / WEIGHTS).is_file():
        return read_tensors(folder / WEIGHTS)
    if (folder / INDEX).is_file():
        return _read_shards(folder)
    pickles = [name for name in PICKLES if (folder / name).is_file()]
    if pickles:
        raise UserError(
            f"{folder / pickles[0]}: pickle files can run arbitrary code, so regard does "
            f"not read them; if you trust it, convert it to {WEIGHTS}:\n"
            "  python -c 'from transformers import MarianMTModel as M; "
            f'M.from_pretrained("{folder}").save_pretrained("{folder}")\''
        )
    raise UserError(f"{folder}: no weights found; expected {WEIGHTS} or {INDEX}")


def _read_shards(folder: Path) -> dict[str, Tensor]:
    """Read the tensors of all files that the index names."""
    files = read_object(folder / INDEX).get("weight_map")
    if not isinstance(files, dict) or not files:
        raise UserError(f"{folder / INDEX}: corrupted: weight_map is missing; copy it again")
    tensors: dict[str, Tensor] = {}
    for name in sorted({str(file) for file in files.values()}):
        if Path(name).name != name:
            raise UserError(f"{folder / INDEX}: expected a file in the same folder, found {name}")
        tensors |= read_tensors(folder / name)
    if missing := [name for name in files if name not in tensors]:
        raise UserError(f"{folder}: {files[missing[0]]} lacks the tensor {missing[0]}")
    return tensors
