"""Checkpoints: weights, optimizer, averages and progress, in plain formats, with checksums.

Nothing here is a pickle: tensors lie in safetensors files, the rest in JSON. There is no random
state: the noise of each batch follows from the seed and the number of the batch.
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
from regard.storage.weights import load_weights, once, read_tensors, save_weights
from regard.training.run import Run, TrainingState

FILES = ("model.safetensors", "training.safetensors", "state.json")


def save_checkpoint(run: Run) -> None:
    """Write `checkpoint/` atomically and keep the previous one as `checkpoint.prev/`."""
    folder = run.folder
    fresh, last, old = (
        folder / name for name in ("checkpoint.tmp", "checkpoint", "checkpoint.prev")
    )
    tensors = dict(_tensors(run))
    if not parallel.is_main_process():
        save_weights(run.model, fresh)  # its part of them
        return
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        fresh.mkdir(parents=True)
        save_weights(run.model, fresh / FILES[0])
        write_bytes(fresh / FILES[1], save(tensors))
        write_json(fresh / FILES[2], asdict(run.state))
        write_json(fresh / "checksums.json", {name: _checksum(fresh / name) for name in FILES})
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)  # on a full disk it would be in the way
        raise
    if last.exists():
        shutil.rmtree(old, ignore_errors=True)
        os.rename(last, old)
    os.rename(fresh, last)


def load_checkpoint(run: Run) -> None:
    """Puts the newest whole checkpoint back; a run that has none yet begins."""
    place = parallel.broadcast(_newest(run.folder))
    if place is None:
        return
    load_weights(run.model, place / FILES[0])
    groups: dict[str, dict[str, Tensor]] = {}
    for full, value in read_tensors(place / FILES[1]).items():
        kind, name = full.split("/", 1)
        groups.setdefault(kind, {})[name] = value
    _restore_optimizers(run, groups.get("optimizer", {}))
    weights = run.weights()
    saved: list[Any] = []
    for name, value in sorted(groups.get("average", {}).items(), key=lambda item: _places(item[0])):
        part, place_in_part = _places(name)
        if part == len(saved):
            saved.append([])
        saved[part].append(parallel.shard_like(value, weights[place_in_part]))
    run.average.restore(saved)
    if gradients := groups.get("previous_gradients", {}):
        run.previous_gradients = [
            parallel.shard_like(gradients[str(i)], weight) for i, weight in enumerate(weights)
        ]
    carried = groups.get("carry", {})
    run.carry = tree_of({n: parallel.shard_rows(t).to(run.device) for n, t in carried.items()})
    try:
        run.state = TrainingState(**read_json(place / FILES[2]))
    except TypeError as error:
        raise UserError(f"{place / FILES[2]}: damaged: {error}") from error


def _tensors(run: Run) -> Iterator[tuple[str, Tensor]]:
    """All tensors of training but the weights, by name, whole."""
    names = {id(p): name for name, p in once(run.model).items()}
    for optimizer in run.optimizers:
        for parameter, values in optimizer.state.items():
            for key, value in ((k, v) for k, v in values.items() if v is not None):
                full = parallel.full_tensor(torch.as_tensor(value)).contiguous()
                yield f"optimizer/{key}/{names[id(parameter)]}", full
    for number, part in enumerate(run.average.saved()):
        for place, value in enumerate(part):
            yield f"average/{number}/{place}", parallel.full_tensor(value).contiguous()
    for place, value in enumerate(run.previous_gradients):
        yield f"previous_gradients/{place}", parallel.full_tensor(value).contiguous()
    for path, value in leaves(run.carry).items():
        yield f"carry/{path}", parallel.all_gather_rows(value).contiguous()


def _restore_optimizers(run: Run, tensors: dict[str, Tensor]) -> None:
    """Puts the state of each parameter back into the optimizer that owns it."""
    own = once(run.model)
    owners = {
        id(parameter): optimizer
        for optimizer in run.optimizers
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
    for full, value in tensors.items():
        key, name = full.split("/", 1)
        parameter = own[name]
        owners[id(parameter)].state[parameter][key] = parallel.shard_like(value, parameter)


def _places(name: str) -> tuple[int, int]:
    """The two numbers of a name such as 0/12."""
    part, place = name.split("/")
    return int(part), int(place)


def _newest(folder: Path) -> Path | None:
    """The newest checkpoint that is whole; says so where that is not the newest of all."""
    if not parallel.is_main_process():
        return None
    wrong: list[str] = []
    for place in (folder / "checkpoint", folder / "checkpoint.prev"):
        if not place.exists():
            continue
        damage = _damage(place)
        if not damage:
            if wrong:
                step = read_json(place / FILES[2])["step"]
                warn(f"{wrong[0]}; going on from the checkpoint before it, of step {step}")
            return place
        wrong.append(damage)
    if wrong:
        raise UserError(
            f"{'; '.join(wrong)}. No whole checkpoint is left; model.safetensors, the best model "
            "so far, can still be used, or trained further with --init-from"
        )
    return None


def _damage(place: Path) -> str:
    """What is wrong with a checkpoint; nothing where it is whole."""
    try:
        sums = read_json(place / "checksums.json")
        for name in FILES:
            if _checksum(place / name) != sums[name]:
                return f"{place / name}: damaged, its checksum is not the one written with it"
    except (UserError, OSError, KeyError, TypeError) as error:
        return f"{place}: damaged ({error})"
    return ""


def _checksum(path: Path) -> str:
    """A fingerprint of a file."""
    mark = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            mark.update(block)
    return mark.hexdigest()
