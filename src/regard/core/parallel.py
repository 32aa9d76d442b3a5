"""Distributed training and inference: the only module that knows about other processes.

torchrun starts the processes and sets their ranks. All functions also work in a single process,
so callers need not check how many processes run.
"""

import contextlib
import datetime
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from regard.core.errors import UserError

Kind = Literal["ddp", "fsdp"]
Value = TypeVar("Value")
Rows = TypeVar("Rows", Tensor, np.ndarray)
TIMEOUT = datetime.timedelta(days=1)  # the main process may tokenize a large corpus meanwhile


@contextlib.contextmanager
def process_group() -> Iterator[None]:
    """Connect all processes of this job inside the block; do nothing for a single process."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        return (yield)
    if torch.cuda.is_available():
        if local_rank() >= torch.cuda.device_count():
            raise UserError(
                f"local rank {local_rank()}: this machine has only {torch.cuda.device_count()} "
                "GPUs",
                help="lower --nproc-per-node",
            )
        torch.cuda.set_device(local_rank())
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    store, rank, size = next(dist.rendezvous("env://", timeout=TIMEOUT))
    # torchrun keeps its store over restarts, with addresses of processes that no longer exist.
    store = dist.PrefixStore(f"start-{restart_count()}", store)
    dist.init_process_group(backend, None, TIMEOUT, size, rank, store)
    try:
        yield
    finally:
        dist.destroy_process_group()


def world_size() -> int:
    """Return the number of processes."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """Return the rank of this process, from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def local_rank() -> int:
    """Return the rank of this process on its machine, from 0."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def is_main_process() -> bool:
    """Return whether this is rank 0, which writes files and logs."""
    return rank() == 0


def device() -> torch.device:
    """Return the GPU of this process if the machine has one, otherwise the CPU."""
    return torch.device("cuda", local_rank()) if torch.cuda.is_available() else torch.device("cpu")


def restart_count() -> int:
    """Return how often torchrun restarted this job after losing a process."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def run_id() -> str:
    """Return torchrun's id of this job, which survives restarts; empty without torchrun."""
    return os.environ.get("TORCHELASTIC_RUN_ID", "")


def barrier() -> None:
    """Wait until all processes reach this call."""
    if world_size() > 1:
        dist.barrier()


def main_process_first(work: Callable[[], Value]) -> Value:
    """Return the result of `work`; the main process runs first, and the others use its cache."""
    if not is_main_process():
        barrier()
    result = work()
    if is_main_process():
        barrier()
    return result


def broadcast(value: Value) -> Value:
    """Return the main process's value, in every process."""
    if world_size() == 1:
        return value
    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def all_reduce_sum(numbers: Sequence[float]) -> list[float]:
    """Return the sum of each number over all processes."""
    if world_size() == 1:
        return list(numbers)
    values = torch.tensor(numbers, dtype=torch.float64, device=device())
    dist.all_reduce(values)
    return values.tolist()


def shard_items(items: Sequence[Value]) -> list[Value]:
    """Return this process's shard of the items."""
    return list(items[rank() :: world_size()])


def all_gather(items: list[Value]) -> list[Value]:
    """Return the items of all processes, in the order they had before `shard_items`."""
    if world_size() == 1:
        return items
    shards: list[list[Value]] = [[] for _ in range(world_size())]
    dist.all_gather_object(shards, items)
    joined: list[Value] = [None] * sum(map(len, shards))  # type: ignore[list-item]
    for number, shard in enumerate(shards):
        joined[number :: len(shards)] = shard
    return joined


def shard_rows(table: Rows) -> Rows:
    """Return this process's shard of the rows of a tensor or an array."""
    return table[rank() :: world_size()]


def all_gather_rows(tensor: Tensor) -> Tensor:
    """Return the rows of all processes, in the order they had before `shard_rows`."""
    if world_size() == 1:
        return tensor
    return torch.stack(all_gather(list(tensor.cpu().unbind(0))))


def wrap(model: nn.Module, kind: Kind) -> nn.Module:
    """Return the module to train in place of the model; fsdp changes the model itself.

    ddp: every process has all weights (Li et al. 2020). fsdp: each process keeps a shard of the
    weights, gradients and optimizer state, layer by layer (Zhao et al. 2023; FSDP2).
    """
    if world_size() == 1 or not any(p.requires_grad for p in model.parameters()):
        return model
    if kind == "ddp":
        return DistributedDataParallel(model)
    from torch.distributed.fsdp import FSDPModule, fully_shard

    if not hasattr(FSDPModule, "reset_iter_state"):
        raise UserError(
            f"training.parallel=fsdp: expected torch 2.13 or newer, found {torch.__version__}",
            help="pip install -U torch, or use training.parallel=ddp",
        )
    # FSDP2 warns that outputs are views, which must not be modified in place. No model here does.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module")
    for layer in _layers(model):
        fully_shard(layer)
    fully_shard(model)
    return model


def _layers(module: nn.Module) -> Iterator[nn.Module]:
    """Yield the modules in the outermost ModuleLists, such as the layers of an encoder."""
    for child in module.children():
        if isinstance(child, nn.ModuleList):
            yield from child
        else:
            yield from _layers(child)


@contextlib.contextmanager
def gradient_sync(engine: nn.Module, is_last: bool) -> Iterator[None]:
    """Synchronize gradients over processes inside the block, if is_last.

    An update synchronizes them only in its last backward pass.
    """
    if isinstance(engine, DistributedDataParallel) and not is_last:
        with engine.no_sync():
            return (yield)
    for module in _sharded_modules(engine)[:1]:  # the root sets it for all layers
        module.set_requires_gradient_sync(is_last)
    yield


@contextlib.contextmanager
def unsharded(model: nn.Module) -> Iterator[None]:
    """Gather all weights inside the block, so that each process can use the model on its own."""
    modules = _sharded_modules(model)
    for module in modules[
        :1
    ]:  # the root first: otherwise its layers would consider themselves roots
        module._get_fsdp_state()._lazy_init()
    for module in modules:
        module.set_reshard_after_forward(False, recurse=False)
        module.unshard()
    yield
    for module in modules[:1]:  # each process has called the layers in its own order
        module.reset_iter_state()
    for module in modules:
        module.reshard()
        module.set_reshard_after_forward(module is not model, recurse=False)


def _sharded_modules(model: nn.Module) -> list[Any]:
    """Return the modules whose weights are sharded over processes, the root first."""
    if world_size() == 1:
        return []
    from torch.distributed.fsdp import FSDPModule

    return [module for module in model.modules() if isinstance(module, FSDPModule)]


def is_sharded(tensor: Tensor) -> bool:
    """Return whether each process has only a shard of the tensor."""
    if world_size() == 1:
        return False  # avoids a slow import
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)


def full_tensor(tensor: Any) -> Tensor:
    """Return the full, detached tensor of a tensor that may be sharded."""
    return (tensor.full_tensor() if is_sharded(tensor) else tensor).detach()


def shard_like(value: Tensor, like: Any) -> Tensor:
    """Return a full tensor sharded like `like`, if `like` is sharded and has the same shape."""
    value = value.to(like.device)
    if not is_sharded(like) or value.shape != like.shape:
        return value
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value, like.device_mesh, like.placements)


def dot(left: Sequence[Any], right: Sequence[Any]) -> float:
    """Return the inner product of two lists of tensors, each seen as one long vector."""
    sharded = any(map(is_sharded, left))
    if sharded:
        left, right = ([tensor.to_local() for tensor in tensors] for tensors in (left, right))
    result = float(sum((a * b).sum() for a, b in zip(left, right, strict=True)))
    return all_reduce_sum([result])[0] if sharded else result
