"""A reader of CTranslate2 files into a torch model."""

import struct
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.exchange.export.ctranslate2 import positions_of, spec_of
from regard.models.encoder_decoder import EncoderDecoder
from regard.storage.run_files import read_config

TYPES = (torch.float32, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16)


@torch.no_grad()
def read_model(folder: Path) -> nn.Module:
    """Return the torch model with the exported weights, dequantized if needed."""
    config = read_config(folder.parent)
    task = config.task.load(folder.parent)
    model = task.build(config.model)
    assert isinstance(model, EncoderDecoder)
    tensors = read_file(folder / "model.bin")
    slots = spec_of(config.model, model, copy=False).variables()
    for name, slot in slots.items():
        if isinstance(slot, np.ndarray) and slot.ndim and "position_encodings" not in name:
            torch.from_numpy(slot).copy_(tensors[name])
    for side, part in (("encoder", model.encoder), ("decoder", model.decoder)):
        for table in positions_of(part).parameters():
            table.copy_(tensors[f"{side}/position_encodings/encodings"])
    return model.eval()


def read_file(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a model.bin by name, dequantized."""
    tensors: dict[str, Tensor] = {}
    try:
        with open(path, "rb") as file:
            _number(file, "I")  # version
            _text(file)
            _number(file, "I")  # revision
            for _ in range(_number(file, "I")):
                name = _text(file)
                shape = [_number(file, "I") for _ in range(_number(file, "B"))]
                kind = TYPES[_number(file, "B")]
                content = bytearray(file.read(_number(file, "I")))
                tensors[name] = torch.frombuffer(content, dtype=kind).view(shape)
            aliases = {_text(file): _text(file) for _ in range(_number(file, "I"))}
        values = {
            name: _dequantize(value, tensors.get(f"{name}_scale"))
            for name, value in tensors.items()
        }
        return values | {alias: values[name] for alias, name in aliases.items()}
    except (OSError, struct.error, ValueError, IndexError, KeyError, RuntimeError) as error:
        raise UserError(f"{path}: corrupted; export the model again ({error})") from error


def _dequantize(value: Tensor, scale: Tensor | None) -> Tensor:
    """Return value / scale as float32. scale: one per row, one for all rows, or None."""
    return value.float() if scale is None else value.float() / scale.view(-1, 1)


def _number(file: BinaryIO, kind: str) -> int:
    (number,) = struct.unpack(kind, file.read(struct.calcsize(kind)))
    return int(number)


def _text(file: BinaryIO) -> str:
    return file.read(_number(file, "H"))[:-1].decode("utf-8")
