"""Several processes that train one model: the only file that knows of them.

Started by torchrun, which says to each process who it is. With one process everything here is the
identity, so nobody else asks how many there are.
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
PATIENCE = datetime.timedelta(days=1)  # the others wait while the first one cuts a large corpus


@contextlib.contextmanager
def processes() -> Iterator[None]:
    """All processes of this job in touch with each other; nothing where there is only this one."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        return (yield)
    if torch.cuda.is_available():
        if local_rank() >= torch.cuda.device_count():
            raise UserError(
                f"this machine has {torch.cuda.device_count()} GPUs, but a process number "
                f"{local_rank()} (from 0) was started on it; lower --nproc-per-node"
            )
        torch.cuda.set_device(local_rank())
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    store, number, count = next(dist.rendezvous("env://", timeout=PATIENCE))
    # torchrun keeps its store over restarts, with the addresses of processes that are gone.
    store = dist.PrefixStore(f"start-{starts()}", store)
    dist.init_process_group(backend, None, PATIENCE, count, number, store)
    try:
        yield
    finally:
        dist.destroy_process_group()


def size() -> int:
    """The number of processes."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """The number of this process, from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def local_rank() -> int:
    """The number of this process on its machine, from 0."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def first() -> bool:
    """Whether this is the process that writes and speaks."""
    return rank() == 0


def device() -> torch.device:
    """The GPU of this process where there is one."""
    return torch.device("cuda", local_rank()) if torch.cuda.is_available() else torch.device("cpu")


def starts() -> int:
    """How often torchrun started this job again after a process was lost."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def job() -> str:
    """What torchrun calls this job, the same after a restart; empty without torchrun."""
    return os.environ.get("TORCHELASTIC_RUN_ID", "")


def wait() -> None:
    """Until all processes are here."""
    if size() > 1:
        dist.barrier()


def in_turn(work: Callable[[], Value]) -> Value:
    """The result of `work`, which the first process does first, so that others find its cache."""
    if not first():
        wait()
    result = work()
    if first():
        wait()
    return result


def agreed(value: Value) -> Value:
    """The value of the first process."""
    if size() == 1:
        return value
    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def total(numbers: Sequence[float]) -> list[float]:
    """The sums of numbers over all processes."""
    if size() == 1:
        return list(numbers)
    values = torch.tensor(numbers, dtype=torch.float64, device=device())
    dist.all_reduce(values)
    return values.tolist()


def share(items: Sequence[Value]) -> list[Value]:
    """The items that are this process's part of the work."""
    return list(items[rank() :: size()])


def gather(items: list[Value]) -> list[Value]:
    """The results of all processes, in the order of what `share` divided."""
    if size() == 1:
        return items
    parts: list[list[Value]] = [[] for _ in range(size())]
    dist.all_gather_object(parts, items)
    joined: list[Value] = [None] * sum(map(len, parts))  # type: ignore[list-item]
    for number, part in enumerate(parts):
        joined[number :: len(parts)] = part
    return joined


def rows(table: Rows) -> Rows:
    """The rows of a tensor or an array that are this process's part."""
    return table[rank() :: size()]


def gather_rows(tensor: Tensor) -> Tensor:
    """The rows of all processes, in the order of what `rows` divided."""
    if size() == 1:
        return tensor
    return torch.stack(gather(list(tensor.cpu().unbind(0))))


def wrap(model: nn.Module, kind: Kind) -> nn.Module:
    """What training calls in place of the model; with fsdp the model itself is changed.

    ddp: every process has all weights (Li et al. 2020). fsdp: each keeps its part of them, of the
    gradients and of the optimizer's state, layer by layer (Zhao et al. 2023; FSDP2).
    """
    if size() == 1 or not any(p.requires_grad for p in model.parameters()):
        return model
    if kind == "ddp":
        return DistributedDataParallel(model)
    from torch.distributed.fsdp import FSDPModule, fully_shard

    if not hasattr(FSDPModule, "reset_iter_state"):
        raise UserError(
            f"training.parallel=fsdp: needs torch 2.13 or newer, this is {torch.__version__}; "
            "pip install -U torch, or choose ddp"
        )
    # It warns of outputs that are views, lest one writes into them; nothing here does.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module")
    for layer in _layers(model):
        fully_shard(layer)
    fully_shard(model)
    return model


def _layers(module: nn.Module) -> Iterator[nn.Module]:
    """The members of the outermost lists of modules."""
    for child in module.children():
        if isinstance(child, nn.ModuleList):
            yield from child
        else:
            yield from _layers(child)


@contextlib.contextmanager
def exchange(engine: nn.Module, now: bool) -> Iterator[None]:
    """Backward in here sums gradients over processes, or leaves that to a later one."""
    if isinstance(engine, DistributedDataParallel) and not now:
        with engine.no_sync():
            return (yield)
    for part in _sharded_parts(engine)[:1]:  # it tells the others
        part.set_requires_gradient_sync(now)
    yield


@contextlib.contextmanager
def gathered(model: nn.Module) -> Iterator[None]:
    """All weights are here, so that each process can use the model on its own."""
    parts = _sharded_parts(model)
    for part in parts[:1]:  # the whole model; else its layers would take themselves for wholes
        part._get_fsdp_state()._lazy_init()
    for part in parts:
        part.set_reshard_after_forward(False, recurse=False)
        part.unshard()
    yield
    for part in parts[:1]:  # each process has called the layers in an order of its own
        part.reset_iter_state()
    for part in parts:
        part.reshard()
        part.set_reshard_after_forward(part is not model, recurse=False)


def _sharded_parts(model: nn.Module) -> list[Any]:
    """The parts of a model whose weights are divided over processes, the whole model first."""
    if size() == 1:
        return []
    from torch.distributed.fsdp import FSDPModule

    return [part for part in model.modules() if isinstance(part, FSDPModule)]


def sharded(tensor: Tensor) -> bool:
    """Whether each process has only a part of a tensor."""
    if size() == 1:
        return False  # and nothing slow is imported
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)


def whole(tensor: Any) -> Tensor:
    """A tensor of which each process may have only a part, as a whole."""
    return (tensor.full_tensor() if sharded(tensor) else tensor).detach()


def divided(value: Tensor, like: Any) -> Tensor:
    """A whole tensor divided over processes as another one of its shape is."""
    value = value.to(like.device)
    if not sharded(like) or value.shape != like.shape:
        return value
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value, like.device_mesh, like.placements)


def dot(ones: Sequence[Any], others: Sequence[Any]) -> float:
    """The inner product of two lists of tensors, each taken as one long vector."""
    apart = any(map(sharded, ones))
    if apart:
        ones, others = ([tensor.to_local() for tensor in tensors] for tensors in (ones, others))
    result = float(sum((one * other).sum() for one, other in zip(ones, others, strict=True)))
    return total([result])[0] if apart else result
