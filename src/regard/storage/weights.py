"""The weights of a model in a file, and back."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from regard.core import parallel
from regard.core.errors import UserError
from regard.core.files import write_bytes


def save_weights(model: nn.Module, path: Path) -> None:
    """The model's weights; a weight that is used twice is written once."""
    tensors = {name: parallel.full_tensor(p).contiguous() for name, p in once(model).items()}
    if parallel.is_main_process():
        write_bytes(path, save(tensors))


def load_weights(model: nn.Module, path: Path) -> None:
    """Puts the weights of a file into a model of the same shape."""
    tensors = read_tensors(path)
    check_fit(model, {name: tensor.shape for name, tensor in tensors.items()}, path)
    fixed = dict(model.named_parameters())
    with torch.no_grad():
        for name, parameter in fixed.items():  # tied weights are there once
            parameter.copy_(parallel.shard_like(tensors.pop(name), parameter))
    model.load_state_dict(tensors, strict=False)  # tables


def check_fit(model: nn.Module, shapes: Mapping[str, Sequence[int]], path: Path) -> None:
    """Refuses weights of these names and shapes that are not the model's."""
    own = once(model)
    fixed = dict(model.named_parameters())  # the size of a table may come from the data
    wrong = [n for n in own if n not in shapes]
    wrong += [n for n, p in fixed.items() if n in shapes and tuple(shapes[n]) != tuple(p.shape)]
    wrong += [name for name in shapes if name not in own]
    if wrong:
        raise UserError(
            f"{path}: the weights do not fit config.yaml: {', '.join(wrong[:3])}"
            f"{' and more' if len(wrong) > 3 else ''}; the folder mixes two runs"
        )


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    with reading(path):
        return load_file(path)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Within, what goes wrong with a safetensors file is said."""
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; the model folder is incomplete") from None
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: damaged or cut short ({error}); copy the folder anew") from error


def once(model: nn.Module) -> dict[str, Tensor]:
    """The parameters and buffers by name, tied ones once."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}
