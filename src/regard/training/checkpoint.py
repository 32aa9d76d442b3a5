"""Checkpoints: weights, optimizer, averages and training state, with checksums.

Nothing is pickled: tensors are stored as safetensors, the rest as JSON. No random state is saved:
the randomness of each batch depends only on the seed and the batch index.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from regard.core import parallel
from regard.core.errors import UserError, warn
from regard.core.files import read_json, write_bytes, write_json
from regard.data.tensors.tree import leaves, tree_of
from regard.storage.weights import load_weights, read_tensors, save_weights, unique_tensors
from regard.training.run import Run, TrainingState

FILES = ("model.safetensors", "training.safetensors", "state.json")


def save_checkpoint(run: Run) -> None:
    """Write `checkpoint/` atomically and keep the previous checkpoint as `checkpoint.prev/`."""
    folder = run.folder
    new, current, previous = (
        folder / name for name in ("checkpoint.tmp", "checkpoint", "checkpoint.prev")
    )
    tensors = dict(_tensors(run))
    if not parallel.is_main_process():
        save_weights(run.model, new)  # takes part in gathering sharded weights; writes nothing
        return
    shutil.rmtree(new, ignore_errors=True)
    try:
        new.mkdir(parents=True)
        save_weights(run.model, new / FILES[0])
        write_bytes(new / FILES[1], save(tensors))
        write_json(new / FILES[2], asdict(run.state))
        write_json(new / "checksums.json", {name: _checksum(new / name) for name in FILES})
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)  # free the disk space
        raise
    if current.exists():
        shutil.rmtree(previous, ignore_errors=True)
        os.rename(current, previous)
    os.rename(new, current)


def load_checkpoint(run: Run) -> None:
    """Restore the newest intact checkpoint; a run without a checkpoint starts from step 0."""
    path = parallel.broadcast(_newest(run.folder))
    if path is None:
        return
    load_weights(run.model, path / FILES[0])
    groups: dict[str, dict[str, Tensor]] = {}
    for full, value in read_tensors(path / FILES[1]).items():
        kind, name = full.split("/", 1)
        groups.setdefault(kind, {})[name] = value
    _restore_optimizers(run, groups.get("optimizer", {}))
    weights = run.weights()
    saved: list[Any] = []
    for name, value in sorted(
        groups.get("average", {}).items(), key=lambda item: _indices(item[0])
    ):
        group, index = _indices(name)
        if group == len(saved):
            saved.append([])
        saved[group].append(parallel.shard_like(value, weights[index]))
    run.average.restore(saved)
    if gradients := groups.get("previous_gradients", {}):
        run.previous_gradients = [
            parallel.shard_like(gradients[str(i)], weight) for i, weight in enumerate(weights)
        ]
    carry = groups.get("carry", {})
    run.carry = tree_of({n: parallel.shard_rows(t).to(run.device) for n, t in carry.items()})
    try:
        run.state = TrainingState(**read_json(path / FILES[2]))
    except TypeError as error:
        raise UserError(f"{path / FILES[2]}: corrupted: {error}") from error


def _tensors(run: Run) -> Iterator[tuple[str, Tensor]]:
    """Yield the name and the unsharded value of each training tensor except the weights."""
    names = {id(p): name for name, p in unique_tensors(run.model).items()}
    for optimizer in run.optimizers:
        for parameter, values in optimizer.state.items():
            for key, value in ((k, v) for k, v in values.items() if v is not None):
                full = parallel.full_tensor(torch.as_tensor(value)).contiguous()
                yield f"optimizer/{key}/{names[id(parameter)]}", full
    for group, tensors in enumerate(run.average.saved()):
        for index, value in enumerate(tensors):
            yield f"average/{group}/{index}", parallel.full_tensor(value).contiguous()
    for index, value in enumerate(run.previous_gradients):
        yield f"previous_gradients/{index}", parallel.full_tensor(value).contiguous()
    for path, value in leaves(run.carry).items():
        yield f"carry/{path}", parallel.all_gather_rows(value).contiguous()


def _restore_optimizers(run: Run, tensors: dict[str, Tensor]) -> None:
    """Restore the optimizer state of each parameter. tensors: values by `key/parameter name`."""
    parameters = unique_tensors(run.model)
    owners = {
        id(parameter): optimizer
        for optimizer in run.optimizers
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
    for full, value in tensors.items():
        key, name = full.split("/", 1)
        parameter = parameters[name]
        owners[id(parameter)].state[parameter][key] = parallel.shard_like(value, parameter)


def _indices(name: str) -> tuple[int, int]:
    """Return the group and the index in a tensor name such as `0/12`."""
    group, index = name.split("/")
    return int(group), int(index)


def _newest(folder: Path) -> Path | None:
    """Return the newest intact checkpoint, if any; warn if a newer one is corrupted.

    Raise UserError if all are corrupted. Processes other than the main process return None.
    """
    if not parallel.is_main_process():
        return None
    problems: list[str] = []
    for path in (folder / "checkpoint", folder / "checkpoint.prev"):
        if not path.exists():
            continue
        problem = _problem(path)
        if not problem:
            if problems:
                step = read_json(path / FILES[2])["step"]
                warn(f"{problems[0]}; falling back to the previous checkpoint (step {step})")
            return path
        problems.append(problem)
    if problems:
        raise UserError(
            f"{folder}: no intact checkpoint ({'; '.join(problems)})",
            help=f"the best model so far is usable; continue from it with --init-from {folder}",
        )
    return None


def _problem(folder: Path) -> str:
    """Return why a checkpoint is corrupted, or an empty string if it is intact."""
    try:
        sums = read_json(folder / "checksums.json")
        for name in FILES:
            if _checksum(folder / name) != sums[name]:
                return f"{folder / name}: checksum mismatch"
    except (UserError, OSError, KeyError, TypeError) as error:
        return f"{folder}: corrupted ({error})"
    return ""


def _checksum(path: Path) -> str:
    """Return the BLAKE2b checksum of a file in hexadecimal."""
    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()
