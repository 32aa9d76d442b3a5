"""Checkpoints: weights, optimiser, random state and progress, in plain formats.

Nothing here is a pickle: tensors lie in safetensors files, the rest in JSON.
"""

import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from regard.errors import UserError
from regard.files import read_json, write_bytes, write_json
from regard.nn.state import Tree, leaves, tree_of


@dataclass
class Progress:
    """How far a run is. position: batches of this epoch already used."""

    step: int = 0
    epoch: int = 0
    position: int = 0
    seconds: float = 0.0
    best: float | None = None
    best_step: int = 0
    stale: int = 0
    finished: bool = False
    validated: int = -1
    tenth: int = 0
    pause_until: float = 0.0
    saved: float = 0.0


def save_weights(model: nn.Module, path: Path) -> None:
    """The model's weights; a weight that is used twice is written once."""
    write_bytes(path, save({name: p.detach().contiguous() for name, p in _once(model).items()}))


def load_weights(model: nn.Module, path: Path) -> None:
    """Puts the weights of a file into a model of the same shape."""
    tensors = read_tensors(path)
    own = _once(model)
    fixed = dict(model.named_parameters())  # the size of a table may come from the data
    wrong = [n for n in own if n not in tensors]
    wrong += [n for n, p in fixed.items() if n in tensors and tensors[n].shape != p.shape]
    wrong += [name for name in tensors if name not in own]
    if wrong:
        raise UserError(
            f"{path}: the weights do not fit config.yaml: {', '.join(wrong[:3])}"
            f"{' and more' if len(wrong) > 3 else ''}; the folder mixes two runs"
        )
    model.load_state_dict(tensors, strict=False)  # tied weights are there once


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    try:
        return load_file(path)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; the model folder is not complete") from None
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: damaged or cut short ({error}); copy the folder anew") from error


def save_checkpoint(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    progress: Progress,
    carry: Tree = None,
) -> None:
    """Writes `last/` so that at each moment one whole checkpoint is there."""
    fresh, last, old = (folder / name for name in ("last.new", "last", "last.old"))
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    save_weights(model, fresh / "model.safetensors")
    tensors = {"random": torch.get_rng_state()}
    if torch.cuda.is_available():
        tensors["random_cuda"] = torch.cuda.get_rng_state()
    names = {id(p): name for name, p in _once(model).items()}
    for parameter, values in optimizer.state.items():
        for key, value in values.items():
            tensors[f"{key}/{names[id(parameter)]}"] = torch.as_tensor(value).contiguous()
    tensors |= {f"carry/{path}": t.contiguous() for path, t in leaves(carry).items()}
    write_bytes(fresh / "training.safetensors", save(tensors))
    write_json(fresh / "progress.json", asdict(progress))
    shutil.rmtree(old, ignore_errors=True)
    if last.exists():
        os.rename(last, old)
    os.rename(fresh, last)
    shutil.rmtree(old, ignore_errors=True)


def load_checkpoint(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[Progress, Tree]:
    """Puts the newest checkpoint back; a run that has none yet begins."""
    place = next((p for p in (folder / "last", folder / "last.old") if p.exists()), None)
    if place is None:
        return Progress(), None
    load_weights(model, place / "model.safetensors")
    tensors = read_tensors(place / "training.safetensors")
    torch.set_rng_state(tensors.pop("random"))
    if "random_cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random_cuda"])
    tensors.pop("random_cuda", None)
    own = _once(model)
    device = next(iter(own.values())).device
    names = [name for name in tensors if name.startswith("carry/")]
    carried = {name.removeprefix("carry/"): tensors.pop(name).to(device) for name in names}
    for full, value in tensors.items():
        key, name = full.split("/", 1)
        optimizer.state[own[name]][key] = value.to(own[name].device)
    try:
        return Progress(**read_json(place / "progress.json")), tree_of(
            {name: t.to(device) for name, t in carried.items()}
        )
    except TypeError as error:
        raise UserError(f"{place / 'progress.json'}: damaged: {error}") from error


def _once(model: nn.Module) -> dict[str, Tensor]:
    """The parameters and buffers by name, tied ones once."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}
