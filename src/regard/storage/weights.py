"""The weights of a model as safetensors files."""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor, nn

from regard.core import parallel
from regard.core.errors import UserError
from regard.core.files import check_regular, write_bytes
from regard.storage.build_limit import BuildLimit, BuildTooLarge

SCALE = ".scale"  # end of the name of the scales of an int8 matrix
MAX_HEADER = 16 * 1024**2  # bytes of the header of a safetensors file


def save_weights(model: nn.Module, path: Path) -> None:
    """Write the weights of a model, tied weights once.

    All processes must call this to gather sharded weights; only the main process writes.
    """
    tensors = {
        name: parallel.full_tensor(p).contiguous() for name, p in unique_tensors(model).items()
    }
    if parallel.is_main_process():
        write_bytes(path, save(tensors))


def load_weights(model: nn.Module, path: Path) -> None:
    """Load the weights of a file into a model; raise UserError if names or shapes differ."""
    tensors = read_tensors(path)
    check_shapes(model, {name: tensor.shape for name, tensor in tensors.items()}, path)
    fixed = dict(model.named_parameters())
    with torch.no_grad():
        for name, parameter in fixed.items():  # tied weights appear once
            parameter.copy_(parallel.shard_like(tensors.pop(name), parameter))
    model.load_state_dict(tensors, strict=False)  # buffers


def build_for(build: Callable[[], nn.Module], path: Path) -> nn.Module:
    """Return the model that `build` creates, with random weights, if it fits to a weights file.

    Raise UserError if names or shapes in the file differ. A corrupted configuration may describe
    a model that is far too large: the size of the file limits what is allocated.
    """
    shapes = stored_shapes(path)
    numbers = sum(math.prod(shape) for shape in shapes.values())
    try:
        with BuildLimit(len(shapes), numbers):
            model = build()
    except (BuildTooLarge, RuntimeError, OverflowError, MemoryError) as error:
        raise UserError(
            f"{path}: the weights do not match config.yaml, which describes another model",
            note="config.yaml is corrupted, or the folder contains files of two runs",
        ) from error
    check_shapes(model, shapes, path)
    return model


def stored_shapes(path: Path) -> dict[str, Sequence[int]]:
    """Return the shapes of the weights in a file by name, without the scales of int8 weights."""
    with readable_errors(path), safe_open(path, framework="pt") as file:
        shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
    return {
        name: shape
        for name, shape in shapes.items()
        if not name.endswith(SCALE) or name.removesuffix(SCALE) not in shapes
    }


def check_shapes(model: nn.Module, shapes: Mapping[str, Sequence[int]], path: Path) -> None:
    """Raise UserError unless the names and shapes in a file match those of the model."""
    expected = unique_tensors(model)
    fixed = dict(model.named_parameters())  # the size of a buffer may depend on the data
    wrong = [n for n in expected if n not in shapes]
    wrong += [n for n, p in fixed.items() if n in shapes and tuple(shapes[n]) != tuple(p.shape)]
    wrong += [name for name in shapes if name not in expected]
    if wrong:
        raise UserError(
            f"{path}: the weights do not match config.yaml: {', '.join(wrong[:3])}"
            f"{' and more' if len(wrong) > 3 else ''}",
            note="the folder contains files of two runs",
        )


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file."""
    with readable_errors(path):
        return load_file(path)


@contextlib.contextmanager
def readable_errors(path: Path) -> Iterator[None]:
    """Raise UserError for a missing or corrupted safetensors file inside the block."""
    try:
        check_regular(path)
        _check_header(path)
        yield
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; the model folder is incomplete") from None
    except (SafetensorError, OSError, MemoryError) as error:  # MemoryError: address space
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"{path}: corrupted or truncated ({reason})", help="copy the model folder again"
        ) from error


def _check_header(path: Path) -> None:
    """Raise SafetensorError if the header of a safetensors file is too long."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
    if length > MAX_HEADER:
        raise SafetensorError(f"header of {length:,} bytes")


def unique_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters and buffers by name; a tied tensor appears once."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}
