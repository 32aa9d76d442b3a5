"""A checkpoint folder of transformers: its settings and its tensors. No pickle is ever loaded."""

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
Facts = dict[str, Any]


@dataclass(frozen=True)
class Checkpoint:
    """What lies in the folder beside the tensors. generation: of an older folder its config."""

    folder: Path
    config: Facts
    generation: Facts
    tokenizer: Facts

    def path(self, name: str) -> Path:
        """A file that must be there."""
        path = self.folder / name
        if not path.is_file():
            raise UserError(f"{path}: no such file; copy the whole checkpoint folder")
        return path


def read_checkpoint(folder: Path) -> Checkpoint:
    """The settings of a checkpoint folder."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; a checkpoint folder of transformers expected")
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


def read_object(path: Path) -> Facts:
    """What a JSON file holds by name; nothing where there is no such file."""
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text("utf-8"))
    except (ValueError, OSError) as error:
        raise UserError(f"{path}: not valid JSON ({error}); copy the file again") from error
    if not isinstance(content, dict):
        raise UserError(f"{path}: an object expected, {str(content)[:40]!r} found")
    return content


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The tensors of a checkpoint, of one safetensors file or of several."""
    if (folder / WEIGHTS).is_file():
        return read_tensors(folder / WEIGHTS)
    if (folder / INDEX).is_file():
        return _read_shards(folder)
    pickles = [name for name in PICKLES if (folder / name).is_file()]
    if pickles:
        raise UserError(
            f"{folder / pickles[0]}: a pickle, which can run any code when it is loaded, so it is "
            f"not read; where you trust it, make {WEIGHTS} of it:\n"
            "  python -c 'from transformers import MarianMTModel as M; "
            f'M.from_pretrained("{folder}").save_pretrained("{folder}")\''
        )
    raise UserError(f"{folder}: no weights in it; {WEIGHTS} or {INDEX} expected")


def _read_shards(folder: Path) -> dict[str, Tensor]:
    """The tensors of several files, which an index names."""
    places = read_object(folder / INDEX).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise UserError(f"{folder / INDEX}: damaged, weight_map is missing; copy it again")
    tensors: dict[str, Tensor] = {}
    for name in sorted({str(place) for place in places.values()}):
        if Path(name).name != name:
            raise UserError(f"{folder / INDEX}: a file of the same folder expected, {name} found")
        tensors |= read_tensors(folder / name)
    if lacking := [name for name in places if name not in tensors]:
        raise UserError(f"{folder}: {places[lacking[0]]} lacks the tensor {lacking[0]}")
    return tensors
